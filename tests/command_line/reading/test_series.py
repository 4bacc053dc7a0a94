"""``nbp series``: values of the record, thinned with extremes kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import notebook_probe as nbp
from notebook_probe.command_line.reading.printing import tokens
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.source import Variable
from tests.command_line.reading.build import LOST, N_STEPS, PEAK, losses, norms
from tests.command_line.reading.conftest import Answered, Asked


def values(points: list[tuple[int, float | str]]) -> dict[int, np.float32]:
    return {step: np.float32(value) for step, value in points}


@pytest.fixture(scope="module")
def stored(known: str) -> xr.Dataset:
    """The record as xarray reads it without this package."""
    return xr.open_zarr(known, group="scalars/loop").load()


def test_a_whole_series_has_the_values_that_xarray_reads(
    answer: Answered, known: str, stored: xr.Dataset
) -> None:
    (line,) = answer("series", known, "", "loss", "--points", "400")["series"]
    assert [*values(line["points"])] == stored.step.to_numpy().tolist()
    oracle = stored.loss.sel(module="(root)").to_numpy()
    assert [*values(line["points"]).values()] == oracle.tolist()
    assert (line["module"], line["units"], line["rows"]) == ("(root)", "nat", N_STEPS)
    assert not line["thinned"]


def test_a_thinned_series_keeps_ends_extremes_and_where_numbers_are_lost(
    answer: Answered, known: str
) -> None:
    body, head = answer("series", known, "*", "grad_norm")["series"]
    for line, column in ((body, 0), (head, 1)):
        assert line["thinned"]
        assert len(line["points"]) <= 40
        assert {0, N_STEPS - 1} <= {*values(line["points"])}
        for step, value in values(line["points"]).items():
            np.testing.assert_equal(value, norms()[step, column])
    assert values(body["points"])[PEAK] == np.float32(1e6)
    assert {LOST[0], LOST[-1]} <= {*values(head["points"])}
    lost = {value for _, value in head["points"] if isinstance(value, str)}
    assert lost == {"nan"}
    assert values(head["points"])[int(norms()[:300, 1].argmin())] == norms()[:300, 1].min()


def test_rows_near_a_step_are_all_there(answer: Answered, known: str) -> None:
    (line,) = answer("series", known, "head", "grad_norm", "--around", "303", "--points", "8")[
        "series"
    ]
    assert [*values(line["points"])] == [*range(299, 307)]
    assert dict(line["points"])[303] == "inf"
    assert not line["thinned"]
    (line,) = answer("series", known, "", "loss", "--around", "9999", "--points", "4")["series"]
    assert [*values(line["points"])] == [396, 397, 398, 399]


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        (["--from", "10", "--to", "13"], [10, 11, 12, 13]),
        (["--last", "3"], [397, 398, 399]),
        (["--to", "20", "--last", "2"], [19, 20]),
        (["--from", "398"], [398, 399]),
    ],
)
def test_a_range_is_of_steps_and_rows(
    answer: Answered, known: str, words: list[str], steps: list[int]
) -> None:
    (line,) = answer("series", known, "(root)", "loss", *words)["series"]
    assert [*values(line["points"])] == steps
    assert [*values(line["points"]).values()] == losses()[steps].tolist()


def test_series_are_chosen_by_patterns_in_the_order_of_the_model(
    answer: Answered, known: str
) -> None:
    found = answer("series", known, "*", "*")["series"]
    assert [(one["module"], one["quantity"]) for one in found] == [
        ("(root)", "loss"),
        ("body.0", "grad_norm"),
        ("body.0", "weight_norm"),
        ("head", "grad_norm"),
    ]
    assert found[2]["points"] == [[0, 0.5], [100, 100.5], [200, 200.5], [300, 300.5]]


@pytest.fixture
def mixed(tmp_path: Path) -> str:
    """A series of two schedules with gaps, and values that were written later."""
    place = tmp_path / "mixed.zarr"
    random = np.random.default_rng(3)

    def write(writer: RecordWriter, first: int) -> None:
        for name, every in (("every_2", 2), ("every_3", 3)):
            stream = writer.stream(name)
            stream.extend(["m", "n"], [Variable("x")])
            for step in range(first, first + 60, every):
                row = random.normal(size=(1, 2)).astype(np.float32)
                row[0, 0] = np.nan if random.random() < 0.3 else row[0, 0]
                stream.record(step, step, row)

    with RecordWriter(place, title="mixed", modules=[]) as writer:
        write(writer, 0)
        writer.backfill("m", "x", [6, 7], [60.0, 70.0])
    return str(place)


@pytest.mark.parametrize("module", ["m", "n"])
def test_a_series_of_several_schedules_is_joined_as_xarray_has_it(
    answer: Answered, mixed: str, module: str
) -> None:
    (line,) = answer("series", mixed, module, "x", "--points", "400")["series"]
    oracle = nbp.open_run(mixed).series(module, "x")
    assert [*values(line["points"])] == oracle.step.to_numpy().tolist()
    assert [*values(line["points"]).values()] == oracle.to_numpy().tolist()
    (line,) = answer("series", mixed, module, "x", "--from", "5", "--to", "9")["series"]
    part = oracle.sel(step=slice(5, 9))
    assert [*values(line["points"]).items()] == [*zip(part.step.values, part.values, strict=True)]


def test_the_text_says_the_same_in_few_tokens(ask: Asked, known: str) -> None:
    code, out, err = ask("series", known, "", "loss")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "known: finished, 400 steps"
    assert out.splitlines()[1] == "(root) loss [nat], 34 of 400 rows, step:value"
    assert "0:2.5 " in out
    assert "399:0.1\n" in out
    assert tokens(out) < 400


def test_a_limit_leaves_series_out_and_says_so(ask: Asked, answer: Answered, known: str) -> None:
    found = answer("series", known, "*", "*", "--limit", "300")
    assert (len(found["series"]), found["left_out"]) == (1, 3)
    assert (
        "3 more series; --limit 0 prints all\n"
        in ask("series", known, "*", "*", "--limit", "300")[1]
    )
    assert answer("series", known, "*", "*", "--limit", "0")["left_out"] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["body.0", "grad_nrm"], "close: 'grad_norm'"),
        (["bdy.0", "grad_norm"], "close: 'body.0'"),
        (["head", "weight_norm"], "no weight_norm of module 'head' is recorded; known: 'body.0'"),
        (["grad_norm", "head"], "the module comes first"),
        (["head.*", "grad_norm"], "no module 'head.*' is recorded"),
        (["head", "grad_norm", "--from", "900"], "in this range"),
        (["head", "grad_norm", "--points", "3"], "at least 4"),
        (["head", "grad_norm", "--last", "-3"], "a whole number from 0 is expected"),
    ],
)
def test_what_is_not_there_is_one_line_and_code_2(
    ask: Asked, known: str, words: list[str], says: str
) -> None:
    code, out, err = ask("series", known, *words)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_job_answers_with_its_first_rank(answer: Answered, known: str, tmp_path: Path) -> None:
    for rank in range(2):
        shutil.copytree(known, tmp_path / "job.zarr" / f"rank_0000{rank}")
    (line,) = answer("series", str(tmp_path / "job.zarr"), "", "loss", "--last", "1")["series"]
    assert values(line["points"]) == {399: np.float32(0.1)}
