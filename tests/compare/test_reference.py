"""Differences from good runs: what was planted is found first, further healthy seeds are not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.compare.reference import (
    ReferenceDifferences,
    ReferenceSearch,
    opened_references,
)
from notebook_probe.errors import RecordFormatError, RecordWarning
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import ModuleRow, Variable
from tests.compare.made import Made, made
from tests.compare.test_records import record

N = 120
MODULES = ("conv1", "bn1", "head")
NORMS = ("grad_norm", "weight_norm")
Norms = dict[str, np.ndarray]


def seed(number: int, sigma: float = 0.05) -> Norms:
    """Norms that fall; each series has another level, and each row another noise."""
    rng = np.random.default_rng(number)
    level, noise = rng.normal(0, sigma, (3, 1)), rng.normal(0, sigma, (3, N))
    return dict(zip(MODULES, np.exp(-np.arange(N) / 60 + level + noise), strict=True))


def good(n: int, first: int = 0) -> list[Made]:
    return [made(f"good-{i}", seed(i)) for i in range(first, first + n)]


def planted(times: float, *, module: str = "bn1", step: int = 40, number: int = 50) -> Made:
    norms = seed(number)
    norms[module][step:] *= times
    return made("this", norms)


def found(this: Made, references: list[Made], factor: float | None = None) -> ReferenceDifferences:
    return ReferenceSearch(this, references, ["norm"], factor).found()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_planted_ratio_is_found_at_its_module_and_step_with_its_values(n: int) -> None:
    references = good(n)
    differences = found(planted(5.0), references)
    [first] = differences
    assert (first.module, first.quantity, first.step, first.began) == ("bn1", "norm", 40, 40)
    there = np.exp(np.mean([np.log(np.float32(seed(i)["bn1"][40])) for i in range(n)]))
    assert first.there == pytest.approx(there, rel=1e-6)
    assert first.here == pytest.approx(5 * seed(50)["bn1"][40], rel=1e-6)
    assert 10**first.distance == pytest.approx(first.here / first.there)
    assert first.n_rows == N - 40


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_of_twenty_further_seeds_none_differs(n: int) -> None:
    references = good(n)
    assert [i for i in range(20) if found(made("this", seed(100 + i)), references).found] == []


@pytest.mark.parametrize(("n", "times", "differs"), [
    (1, 2.6, False), (1, 3.6, True), (2, 2.6, False), (2, 3.6, True),
    (3, 1.7, False), (3, 2.4, True), (4, 1.7, False), (4, 2.4, True),
])  # fmt: skip
def test_fewer_references_ask_for_a_larger_ratio(n: int, times: float, differs: bool) -> None:
    assert bool(found(planted(times), good(n)).found) is differs


def test_a_run_that_is_as_one_of_two_references_does_not_differ() -> None:
    far = made("far", {name: 9 * values for name, values in seed(1).items()})
    assert not found(made("this", {k: 9 * v for k, v in seed(2).items()}), [*good(1), far]).found


def test_a_group_that_scatters_hides_what_lies_within_its_own_noise() -> None:
    wide = [made(f"good-{i}", seed(i, sigma=0.6)) for i in range(4)]
    assert found(planted(2.5), good(4)).found
    assert not found(planted(2.5), wide).found


def test_a_factor_of_the_users_own_counts() -> None:
    assert not found(planted(5.0), good(4), 8.0).found
    assert found(planted(1.7), good(4), 1.3).found
    with pytest.raises(ValueError, match="factor=1; a number above 1"):
        found(planted(5.0), good(1), 1)


def test_differences_of_one_step_come_in_the_order_of_the_model_and_their_report_says_all() -> None:
    norms = seed(50)
    norms["head"][30:] *= 6
    norms["conv1"][30:] *= 4
    differences = found(made("this", norms), good(4))
    assert [one.module for one in differences] == ["conv1", "head"]
    assert differences.title.startswith(
        "Differs from 4 reference runs first at step 30: conv1, norm"
    )
    assert repr(differences).splitlines()[-1] == "compared up to step 119: norm"
    assert "<table" in differences._repr_html_()
    read = json.loads(differences.to_json())
    assert read["found"][1]["module"] == "head"
    assert read["references"] == ["good-0", "good-1", "good-2", "good-3"]


def test_rows_that_come_one_after_the_other_give_what_all_at_once_gives() -> None:
    whole, norms = planted(5.0), seed(50)
    norms["bn1"][40:] *= 5.0
    growing = made("this", {name: values[:1] for name, values in norms.items()})
    search = ReferenceSearch(growing, good(4), ["norm"])
    steps_at: dict[str, int] = {}
    stream = growing.streams["every_1"]
    for step in range(1, N):
        stream.append([step], norm=[[norms[name][step] for name in MODULES]])  # type: ignore[attr-defined]
        if first := search.found().first:
            steps_at.setdefault("found", step)
            assert (first.module, first.step) == ("bn1", 40)
    assert steps_at["found"] <= 52
    assert search.found().first is not None
    [first], [expected] = search.found(), found(whole, good(4))
    assert (first.step, first.here, first.there) == (expected.step, expected.here, expected.there)


def test_a_look_reads_only_new_rows_and_some_before_them() -> None:
    this, references = made("this", seed(50)), good(2)
    search = ReferenceSearch(this, references, ["norm"])
    search.look()
    stream = this.streams["every_1"]
    n_read = stream.n_values_read  # type: ignore[attr-defined]
    search.look()
    assert stream.n_values_read - n_read <= 3 * 3 * 20  # type: ignore[attr-defined]


def test_rare_rows_are_compared_with_the_nearest_measured_ones() -> None:
    norms = seed(50)
    norms["bn1"][40:] *= 5.0
    rare = made("this", {k: v[::8] for k, v in norms.items()}, steps=range(0, N, 8))
    dense = [
        made(f"good-{i}", {k: v[::3] for k, v in seed(i).items()}, steps=range(0, N, 3))
        for i in range(4)
    ]
    [first] = found(rare, dense)
    assert (first.module, first.step, first.began) == ("bn1", 40, 33)


def test_what_comes_after_the_shortest_reference_is_not_compared() -> None:
    references = good(4)
    short = made("short", {name: values[:60] for name, values in seed(9).items()})
    late = planted(5.0, step=80)
    assert found(late, references).found
    assert not found(late, [*references[:3], short]).found


def test_a_module_without_a_value_is_a_difference_where_the_run_has_its_column() -> None:
    run = made("this", seed(50))
    run.streams["every_1"]._values["norm"][:, 1] = NOT_MEASURED  # type: ignore[attr-defined]
    [first] = found(run, good(4))
    assert (first.module, first.step, first.is_absent) == ("bn1", 0, True)
    norms = seed(50)
    del norms["bn1"]
    assert not found(made("this", norms), good(4)).found  # nothing was attached there


def test_values_that_are_not_finite_differ_from_finite_ones() -> None:
    norms = seed(50)
    norms["head"][100:] = np.nan
    [first] = found(made("this", norms), good(4))
    assert (first.module, first.step) == ("head", 100)
    assert np.isinf(first.distance)


def test_a_quantity_with_signs_is_named_as_not_compared() -> None:
    signed = [made(f"good-{i}", {k: v - 0.5 for k, v in seed(i).items()}) for i in range(4)]
    differences = found(planted(5.0), signed)
    assert not differences.found
    assert differences.skipped == (
        "negative or zero in places, so that a ratio tells nothing: norm",
    )


def test_a_small_share_may_be_a_multiple_of_another_one() -> None:
    def shares(name: str, value: float, number: int) -> Made:
        noise = np.random.default_rng(number).uniform(0.9, 1.1, N)
        return made(name, logged={"zero_fraction": value * noise})

    references = [shares(f"good-{i}", 0.02, i) for i in range(4)]
    few, many = shares("few", 0.1, 8), shares("many", 0.4, 9)
    assert not ReferenceSearch(few, references, ["zero_fraction"]).found().found
    assert ReferenceSearch(many, references, ["zero_fraction"]).found().found


def test_models_that_differ_are_reported_module_by_module() -> None:
    this, [other] = made("this", seed(50)), good(1)
    row = this.modules[1]
    changed = ModuleRow(row.name, "Identity", 0, 0, row.parent)
    this.modules = (*this.modules[:1], changed, *this.modules[2:])
    [sentence] = found(this, [other]).modules
    assert sentence.startswith(f"{row.name} is Identity, in the references {row.class_name}")


def test_nothing_in_common_is_no_difference() -> None:
    late = made("late", seed(50), steps=range(1000, 1000 + N))
    assert found(late, good(4)).title == "Nothing could be compared with 4 reference runs yet"


# ---------------------------------------------------------------------- damaged records


def two_norms(place: Path, weight: float = 1.0) -> Path:
    """Record forty steps of two quantities, in chunks of ten."""
    with RecordWriter(place, title=place.stem, modules=[], chunks={"step": 10}) as writer:
        stream = writer.stream("every_1")
        stream.extend(["fc"], [Variable(name, attrs={"needs": "grad"}) for name in NORMS])
        for step in range(40):
            row = [[1.0], [1.0 if step < 12 else weight]]
            stream.record(step, step, np.array(row, np.float32))
    return place


def spoil(place: Path, chunk: str) -> str:
    (place / "scalars/every_1" / chunk).write_bytes(b"garbage" * 9)
    return f"cannot read {place}/scalars/every_1/{chunk}:"


@pytest.mark.parametrize("is_this", [True, False])
def test_a_damaged_chunk_is_named_and_all_other_quantities_are_compared(
    tmp_path: Path, is_this: bool
) -> None:
    this, good = two_norms(tmp_path / "this.zarr", 100.0), two_norms(tmp_path / "good.zarr")
    why = spoil(this if is_this else good, "grad_norm/c/1/0")
    search = ReferenceSearch(nbp.open_run(this), opened_references(good))
    for _ in range(2):  # a later look tries again, and says the same
        differences = search.found()
        assert [(one.quantity, one.step) for one in differences] == [("weight_norm", 12)]
        assert differences.compared == ("weight_norm",)
        [text] = differences.skipped
        assert text.startswith(f"grad_norm: {why}")


def test_a_reference_with_a_damaged_chunk_still_counts_in_other_quantities(tmp_path: Path) -> None:
    this = two_norms(tmp_path / "this.zarr", 100.0)
    good = [two_norms(tmp_path / f"good-{i}.zarr") for i in range(2)]
    why = spoil(good[1], "grad_norm/c/1/0")
    differences = ReferenceSearch(nbp.open_run(this), opened_references(good)).found()
    assert differences.references == ("good-0", "good-1")
    assert differences.compared == NORMS
    [text] = differences.skipped
    assert text.startswith(f"grad_norm: good-1 is left out: {why}")


# ---------------------------------------------------------------------- naming references


def test_references_are_named_by_pattern_path_run_or_row_and_never_the_run_itself(
    tmp_path: Path,
) -> None:
    runs = [record(tmp_path / f"good-{i}.zarr", 4) for i in range(3)]
    pattern = str(tmp_path / "good-*.zarr")
    by_pattern = opened_references(pattern)
    assert [one.location for one in by_pattern] == [one.location for one in runs]
    assert opened_references(runs[0]) == (runs[0],)
    by_path = opened_references([tmp_path / "good-1.zarr", runs[2]])
    assert [one.location for one in by_path] == [runs[1].location, runs[2].location]
    assert len(opened_references([{"run": runs[0].location}])) == 1
    assert len(opened_references(pattern, this=runs[1].location)) == 2


def test_what_is_no_reference_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordFormatError, match=r"none-\*.zarr': no record exists there"):
        opened_references(str(tmp_path / "none-*.zarr"))
    with pytest.raises(TypeError, match="reference=7: a path, a pattern such as"):
        opened_references(7)  # type: ignore[arg-type]


def test_more_than_four_references_are_cut_with_a_warning(tmp_path: Path) -> None:
    for i in range(5):
        record(tmp_path / f"good-{i}.zarr", 2)
    (tmp_path / "good-x.zarr").mkdir()
    with pytest.warns(RecordWarning) as warned:
        assert len(opened_references(str(tmp_path / "good-*.zarr"))) == 4
    texts = [str(one.message) for one in warned]
    assert any(one.startswith("5 references, of which the first 4 are taken") for one in texts)
    assert any(one.startswith("left out: ") for one in texts)
