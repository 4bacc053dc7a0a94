"""Records that are damaged, or made to do harm to a terminal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from notebook_probe.alerts import Alert
from notebook_probe.alerts.alert import ALERT
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.source import ModuleRow, Variable
from tests.command_line.reading.conftest import Asked, strict_json

ODD = "\x1b[31mred\n\x07\u202e"
STEERING = {"\x1b", "\x07", "\u202e"}
VERBS = (
    ["explain"],
    ["alerts"],
    ["output"],
    ["series", "*", "*"],
    ["tree"],
    ["plot", "*", "*", "--ascii"],
    ["follow"],
)


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A record all of whose names steer a terminal."""
    place = tmp_path / "odd.zarr"
    modules = [ModuleRow("", ODD, 1, 0, -1), ModuleRow(ODD, ODD, 1, 1, 0)]
    alert = Alert(ODD, 3, f"{ODD}: {ODD}", (ODD,), ("loss",), severity="severe")
    with RecordWriter(place, title=ODD, modules=modules) as writer:
        stream = writer.stream("every_1")
        stream.extend([ODD], [Variable("loss", ODD, ODD)])
        for step in range(5):
            stream.record(step, step, np.ones((1, 1), np.float32))
        writer.event(3, ALERT, alert.text, alert.detail)
        writer.event(3, ODD, ODD, ODD)
        writer.event(3, "output", ODD, ODD)
    return str(place)


@pytest.mark.parametrize("verb", [*VERBS, ["quantities"]], ids=lambda words: words[0])
def test_names_that_steer_a_terminal_are_harmless(ask: Asked, odd: str, verb: list[str]) -> None:
    name, *words = verb
    code, out, err = ask(name, odd, *words)
    assert (code, err) == (0, "")
    assert not STEERING & {*out}
    if name != "follow":
        told = ask(name, odd, *words, "--json")[1]
        assert told.isascii()
        assert "\\u001b[31mred" in told or name == "quantities"
        strict_json(told)


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words[0])
def test_a_damaged_part_is_left_out_with_a_line(
    ask: Asked, known: str, tmp_path: Path, verb: list[str]
) -> None:
    place = tmp_path / "damaged.zarr"
    shutil.copytree(known, place)
    root = json.loads((place / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"]["scalars/every_1/grad_norm"]["shape"] = [10**9]
    (place / "zarr.json").write_text(json.dumps(root))
    name, *words = verb
    code, out, err = ask(name, str(place), *words)
    assert code == 0
    assert "left out: " in err
    assert all(line.startswith("notebook_probe: ") for line in err.splitlines())
    assert out
    if name not in ("follow",):
        told = strict_json(ask(name, str(place), *words, "--json")[1])
        assert len(told["problems"]) == 1


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words[0])
@pytest.mark.parametrize("text", ["", "{", '{"zarr_format": 3}', "[]", "\x00\xff"])
def test_what_is_no_record_is_one_line_and_code_2(
    ask: Asked, tmp_path: Path, verb: list[str], text: str
) -> None:
    (tmp_path / "none.zarr").mkdir()
    (tmp_path / "none.zarr" / "zarr.json").write_text(text)
    name, *words = verb
    code, out, err = ask(name, str(tmp_path / "none.zarr"), *words)
    assert (code, out) == (2, "")
    assert err.startswith("notebook_probe: error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("verb", VERBS, ids=lambda words: words[0])
def test_a_chunk_that_is_damaged_is_one_line(
    ask: Asked, known: str, tmp_path: Path, verb: list[str]
) -> None:
    place = tmp_path / "chunk.zarr"
    shutil.copytree(known, place)
    chunks = [*(place / "scalars" / "every_1" / "grad_norm").glob("c/**/*")]
    for file in chunks:
        if file.is_file():
            file.write_bytes(b"not a frame at all, but longer than a header")
    name, *words = verb
    code, _, err = ask(name, str(place), *words)
    assert code in (0, 2)
    assert all(line.startswith("notebook_probe: ") for line in err.splitlines())
