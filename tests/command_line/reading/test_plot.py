"""``nbp plot``: lines of characters, and pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from notebook_probe.command_line.reading.sparkline import DIGITS, sparkline
from tests.command_line.reading.build import PEAK, norms
from tests.command_line.reading.conftest import Answered, Asked


def test_a_line_has_60_characters_a_peak_and_lost_values(answer: Answered, known: str) -> None:
    body, head = answer("plot", known, "*", "grad_norm", "--ascii")["series"]
    assert (len(body["line"]), len(head["line"])) == (60, 60)
    assert body["line"][PEAK * 60 // 400] == "9"
    assert {*body["line"]} == {"0", "9"}
    assert [place for place, one in enumerate(head["line"]) if one == "!"] == [*range(45, 53)]
    assert body["greatest"] == 1e6
    assert head["least"] == float(str(np.nanmin(norms()[:, 1])))


def test_the_text_has_the_line_and_its_numbers(ask: Asked, known: str) -> None:
    code, out, err = ask("plot", known, "", "loss", "--ascii", "--from", "100")
    assert (code, err) == (0, "")
    _, numbers, line = out.splitlines()
    assert numbers == "(root) loss: 1.898 at step 100, 0.1 at step 399; from 0.1 to 1.898"
    assert len(line) == 60
    assert (line[0], line[-1]) == ("█", "▁")
    assert sorted(line, reverse=True) == [*line]


@pytest.mark.parametrize(
    ("steps", "values", "line"),
    [
        ([], [], ""),
        ([5], [1.0], "0"),
        ([0, 1, 2], [np.nan, np.inf, -np.inf], "!!!"),
        ([0, 1, 9], [1, 2, 3], "0.9"),
        ([0, 1, 2, 3], [1, 2, 9, 2], "0191"),
        ([0, 2**62], [3, 3], "00"),
        ([0, 10**12], [3, 1], "90"),
        ([0, 1], [-1e38, 1e38], "09"),
    ],
)
def test_any_values_are_a_line(steps: list[int], values: list[float], line: str) -> None:
    found = sparkline(np.array(steps, np.int64), np.array(values, np.float32), DIGITS)
    assert found == line


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "head"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml")])
def test_a_picture_is_written_once(
    ask: Asked, answer: Answered, known: str, tmp_path: Path, kind: str, head: bytes
) -> None:
    file = tmp_path / f"norms.{kind}"
    assert answer("plot", known, "*", "grad_norm", "--to", str(file))["file"] == str(file)
    assert file.read_bytes().startswith(head)
    code, _, err = ask("plot", known, "*", "grad_norm", "--to", str(file))
    assert (code, "exists already; --overwrite replaces it" in err) == (2, True)
    assert ask("plot", known, "", "loss", "--to", str(file), "--overwrite")[1] == f"{file}\n"


@pytest.mark.slow
def test_the_picture_shows_the_range_that_is_chosen(ask: Asked, known: str, tmp_path: Path) -> None:
    file = tmp_path / "loss.svg"
    words = ("--from", "100", "--to-step", "200", "--to", str(file))
    assert ask("plot", known, "", "loss", *words)[0] == 0
    assert "loss" in file.read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name a file with --to, or print lines with --ascii"),
        (["--to", "a.gif"], "--to='a.gif'; allowed: a file name that ends with .png or .svg"),
    ],
)
def test_what_cannot_be_drawn_is_code_2(
    ask: Asked, known: str, words: list[str], says: str
) -> None:
    code, out, err = ask("plot", known, "", "loss", *words)
    assert (code, out) == (2, "")
    assert says in err
