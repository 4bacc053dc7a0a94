"""Where runs part: what was planted is found at its module and row, noise is not."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.compare import PartingSearch, RatioGrid, differences, parting
from notebook_probe.compare.members import Members
from notebook_probe.compare.row_pairs import row_pairs
from notebook_probe.errors import UnknownNameError
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Event
from tests.compare.made import Made, made
from tests.explorer.fakes import FakeStream
from tests.record.build import LAW

N = 120
MODULES = ("conv1", "bn1", "head")
PLANTED = st.tuples(st.integers(0, N - 20), st.sampled_from(MODULES), st.sampled_from([-1, 1]))


def noisy(name: str, seed: int, sigma: float = 0.05) -> dict[str, np.ndarray]:
    """Norms that fall, each row with a noise of its own."""
    noise = np.random.default_rng(seed).normal(0, sigma, (len(MODULES), N))
    return dict(zip(MODULES, np.exp(-np.arange(N) / 60 + noise), strict=True))


def planted(values: dict[str, np.ndarray], module: str, step: int, times: float) -> Made:
    values = {**values, module: values[module].copy()}
    values[module][step:] *= times
    return made("this", values)


@LAW
@given(PLANTED, st.floats(2.6, 100), st.integers(0, 2**20))
def test_a_planted_divergence_is_found_at_its_module_and_row(
    where: tuple[int, str, int], times: float, seed: int
) -> None:
    step, module, sign = where
    found = parting(
        planted(noisy("a", seed), module, step, times**sign),
        made("digits-cnn-8", noisy("b", seed + 1)),
        "norm",
    )
    assert [one.module for one in found] == [module]
    assert abs(found[0].step - step) <= 2
    assert np.sign(found[0].now) == sign
    np.testing.assert_allclose(found[0].now, sign * np.log10(times), atol=0.1)
    assert set(found.within) == set(MODULES) - {module}


@LAW
@given(st.integers(0, 2**20))
def test_noise_and_single_spikes_part_nothing(seed: int) -> None:
    values = noisy("a", seed)
    values["bn1"][::11] *= 50
    found = parting(made("this", values), made("other", noisy("b", seed + 1)), "norm")
    assert list(found) == []
    assert found.text == "They stay within ×2 at all 3 modules"


def test_a_record_that_is_not_opened_is_refused() -> None:
    run: Any = made("this", noisy("this", 0))
    wrong: list[tuple[Any, Any]] = [(run, "b.zarr"), (run, ["b.zarr"]), ("b.zarr", run)]
    for this, others in wrong:
        with pytest.raises(TypeError, match=r"such as nbp\.open_run\('b\.zarr'\)"):
            parting(this, others, "norm")
    with pytest.raises(TypeError, match=r"such as nbp\.open_run\('b\.zarr'\)"):
        differences(run, cast("Any", "b.zarr"))


def test_they_are_sorted_by_step_and_told_in_words() -> None:
    values = noisy("a", 0, 0.0)
    values["head"][30:] /= 4
    values["conv1"][50:] *= 3
    found = parting(made("this", values), made("digits-cnn-8", noisy("b", 0, 0.0)), "norm")
    assert [(one.module, one.step) for one in found] == [("head", 30), ("conv1", 50)]
    assert repr(found).splitlines() == [
        "Differs from digits-cnn-8 at step 30: head · norm ÷4.0",
        "head: from step 30, ÷4.0; now ÷4.0",
        "conv1: from step 50, ×3.0; now ×3.0",
    ]


def test_further_apart_for_fewer_rows_is_not_apart() -> None:
    values = noisy("a", 0, 0.0)
    values["head"][40:49] *= 9
    this, other = made("this", values), made("other", noisy("b", 0, 0.0))
    assert list(parting(this, other, "norm", rows=10)) == []
    assert [one.step for one in parting(this, other, "norm", rows=9)] == [40]
    assert list(parting(this, other, "norm", rows=9, factor=9.5)) == []


@LAW
@given(st.data())
def test_who_stays_among_the_seeds_never_parts(data: st.DataObject) -> None:
    """However far the seeds are from each other, a run between them is one of them."""
    levels = [data.draw(st.floats(-4, 4)) for _ in range(data.draw(st.integers(2, 5)))]
    share = data.draw(st.floats(0, 1))
    level = min(levels) + share * (max(levels) - min(levels))
    base = noisy("a", 0, 0.0)
    runs = [
        made("r", {module: row * np.exp(one) for module, row in base.items()})
        for one in (level, *levels)
    ]
    assert list(parting(runs[0], runs[1:], "norm")) == []


@LAW
@given(PLANTED, st.integers(0, 2**20))
def test_beyond_the_seeds_a_planted_divergence_is_found(
    where: tuple[int, str, int], seed: int
) -> None:
    step, module, sign = where
    seeds = [made(f"seed {i}", noisy("s", seed + i)) for i in range(1, 5)]
    this = planted(noisy("a", seed), module, step, 8.0**sign)
    found = parting(this, seeds, "norm")
    assert [one.module for one in found] == [module]
    assert abs(found[0].step - step) <= 2
    assert found.text.startswith(f"Differs from 4 runs at step {found[0].step}: {module} · norm")


def test_seeds_that_differ_by_themselves_raise_what_counts_as_apart() -> None:
    """Three times the mean is far from one run, and near in a group as wide as that."""
    base = noisy("a", 0, 0.0)
    seeds = [
        made("seed", {name: row * level for name, row in base.items()}) for level in (0.5, 1, 2)
    ]
    this = planted(base, "head", 60, 3.0)
    assert [one.step for one in parting(this, seeds[1], "norm")] == [60]
    assert list(parting(this, seeds, "norm")) == []
    spread = np.log([0.5, 1, 2]).std(ddof=1)
    beyond = np.exp(9.93 * spread * np.sqrt(1 + 1 / 3))
    assert list(parting(planted(base, "head", 60, beyond * 0.99), seeds, "norm")) == []
    assert len(parting(planted(base, "head", 60, beyond * 1.01), seeds, "norm")) == 1


def test_a_run_that_is_nan_from_some_step_on_parts_there() -> None:
    values = noisy("a", 0, 0.0)
    values["bn1"][70:] = np.nan
    found = parting(made("this", values), made("other", noisy("b", 0, 0.0)), "norm")
    assert [(one.module, one.step, one.there) for one in found] == [("bn1", 70, np.inf)]
    assert found.words(found[0].now) == "×∞"


def test_signed_values_part_by_spreads() -> None:
    wave = np.tile([-1.0, 1.0], N // 2)
    this = wave.copy()
    this[50:] += 3.0
    found = parting(made("this", {"m": this}), made("other", {"m": wave}), "norm")
    assert found.is_signed
    assert [(one.step, one.there) for one in found] == [(50, 3.0)]
    assert found.text == "Differs from other at step 50: m · norm +3 spreads"
    same = parting(made("this", {"m": wave}), made("other", {"m": wave}), "norm")
    assert same.text == "They stay within 2 spreads at m"


def test_a_run_that_was_measured_more_rarely_counts_its_own_rows() -> None:
    steps = range(0, N, 10)
    rare = {name: row[::10] for name, row in noisy("b", 0, 0.0).items()}
    values = noisy("a", 0, 0.0)
    values["head"][60:] *= 5
    often, rarely = made("this", values), made("other", rare, steps=steps)
    assert [one.step for one in parting(often, rarely, "norm", rows=5)] == [60]
    assert [one.step for one in parting(rarely, often, "norm", rows=5)] == [60]
    assert list(parting(often, rarely, "norm", rows=7)) == []  # there are six from there on


@LAW
@given(st.integers(30, N), st.integers(30, N), st.integers(0, 15))
def test_of_unequal_lengths_the_steps_that_both_have_are_compared(
    n_this: int, n_other: int, step: int
) -> None:
    this, other = (np.exp(-np.arange(n) / 60) for n in (n_this, n_other))
    this[step:] *= np.linspace(3, 9, n_this - step)
    found = parting(made("this", {"m": this}), made("other", {"m": other}), "norm")
    assert len(found) == 1
    assert abs(found[0].step - step) <= 3  # of the first rows no five lie before
    last = min(n_this, n_other)
    ratios = np.log10(np.float32(this[:last]) / np.float32(other[:last]))
    np.testing.assert_allclose(found[0].now, np.median(ratios[-6:]), atol=1e-6)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_schedule_that_changes_while_it_trains_is_followed(swapped: bool) -> None:
    """The other is measured at every step, and from step 40 on at every tenth."""
    n = 400
    steps = [*range(40), *range(40, n, 10)]
    other = made("other", {"m": np.ones(len(steps))}, steps=steps)
    this = made("this", {"m": np.where(np.arange(n) < 200, 1.0, 3.0)})
    runs = (other, this) if swapped else (this, other)
    assert [one.step for one in parting(runs[0], runs[1], "norm")] == [200]


def test_a_module_that_only_one_run_measures_is_named() -> None:
    this = {"conv1": np.ones(N), "head": np.ones(N)}
    found = parting(
        made("this", this), made("other", {"head": np.ones(N), "x": np.ones(N)}), "norm"
    )
    assert (found.within, found.missing) == (("head",), ("conv1", "x"))
    nothing = parting(made("this", this), made("other", logged={"loss": [1.0]}), "norm")
    assert nothing.text == "norm is not recorded in both at any module"


@pytest.mark.parametrize("by", ["time", "samples", "loss"])
def test_of_runs_at_another_pace_the_step_is_of_this_run(by: str) -> None:
    """The other makes two steps where this one makes one; they part at step 40 of this one."""
    n = np.arange(N)
    values = np.exp(-n / 60)
    other = np.exp(-n / 120)
    this = np.where(n >= 40, 4 * values, values)
    logged = {"loss": values, "samples": 2 * n}, {"loss": other, "samples": n}
    a = made("this", {"m": this}, logged=logged[0], seconds=2 * n)
    b = made("other", {"m": other}, logged=logged[1], seconds=n)
    found = parting(a, b, "norm", by=by)
    assert [one.module for one in found] == ["m"]
    assert abs(found[0].step - 40) <= 1
    assert len(parting(a, b, "norm", by=by, factor=3.9)) == 1
    assert len(parting(a, b, "norm", by=by, factor=4.1)) == 0


def test_of_a_group_those_without_the_axis_are_left_out_by_name() -> None:
    values, n = np.ones(N), np.arange(N)
    has = [made(f"seed {i}", {"m": values}, logged={"samples": n}) for i in range(2)]
    lacks = made("digits-cnn-5", {"m": values})
    found = parting(has[0], [has[1], lacks], "norm", by="samples")
    assert found.others == ("seed 1",)
    assert [text.split(";")[0] for text in found.left_out] == [
        "samples are not recorded in digits-cnn-5"
    ]
    assert repr(found).startswith("They stay within ×2 at m\nsamples are not recorded")
    assert (
        RatioGrid(has[0], [has[1], lacks], "norm", by="samples").members.left_out == found.left_out
    )
    with pytest.raises(UnknownNameError, match="not recorded in digits-cnn-5"):
        parting(has[0], [lacks], "norm", by="samples")
    with pytest.raises(UnknownNameError, match="another run is expected"):
        parting(has[0], [], "norm")


def test_an_option_that_makes_no_sense_is_refused() -> None:
    run = made("this", {"m": [1.0]})
    with pytest.raises(ValueError, match=r"factor=1\.0; a number above 1"):
        parting(run, run, "norm", factor=1.0)
    with pytest.raises(ValueError, match="rows=0; allowed: a whole number from 1"):
        parting(run, run, "norm", rows=0)
    with pytest.raises(UnknownNameError, match="samples are not recorded in this"):
        parting(run, run, "norm", by="samples")


@pytest.mark.parametrize("module", ["m0", "m99"])
def test_of_a_long_record_the_row_is_found_as_well(module: str) -> None:
    """More values than are all read: columns say where, and rows when."""
    n = 8000
    base = np.exp(np.random.default_rng(0).normal(0, 0.1, (100, n))).astype(np.float32)
    names = [f"m{i}" for i in range(100)]
    other = made("other", dict(zip(names, base, strict=True)))
    values = base[::-1].copy()
    values[names.index(module), 4321:] *= 6
    this = made("this", dict(zip(names, values, strict=True)))
    found = parting(this, other, "norm")
    assert [one.module for one in found] == [module]
    assert abs(found[0].step - 4321) <= 1
    assert len(found.within) == 99


@pytest.mark.parametrize("n", [30, 6000])
def test_a_search_follows_runs_that_grow(n: int) -> None:
    names = [f"m{i}" for i in range(100)]
    level = dict.fromkeys(names, np.ones(n))
    a, b = made("a", level), made("b", level)
    search = PartingSearch(a, [b], "norm")
    assert list(search.found()) == []
    for run, last in ((a, 5.0), (b, 1.0)):
        run.given[0].append(range(n, n + 40), norm=[[1.0] * 99 + [last]] * 40)
    found = search.found()
    assert [(one.module, one.step) for one in found] == [("m99", n)]
    assert list(search.found(factor=6.0)) == []


def test_runs_of_one_name_are_told_apart_by_their_places() -> None:
    runs = [made("GPT", {"m": np.full(N, value)}) for value in (1.0, 4.0)]
    for run, place in zip(runs, ("runs/first.zarr", "s3://bucket/second.zarr/"), strict=True):
        run.location = place
    found = parting(runs[0], runs[1], "norm")
    assert (found.this, found.others) == ("first", ("second",))
    assert found.text.startswith("Differs from second at step 0")


def rare(values: list[float], name: str = "this") -> Made:
    """A run that is measured at every 20th step, as a budget makes it."""
    return made(name, {"m": values}, steps=range(0, 20 * len(values), 20))


def test_of_rows_far_from_each_other_three_are_enough_to_part() -> None:
    other = rare([1.0] * 20, "other")
    found = parting(rare([1.0] * 13 + [5.0] * 7), other, "norm")
    assert [(one.step, one.n_rows, one.n_wanted) for one in found] == [(260, 7, 3)]
    wild = parting(rare([1.0] * 13 + [1e8] + [1.0] * 6), other, "norm")
    assert wild.text == "They stay within ×2 at m", "a single wild row is none"


@pytest.mark.parametrize("n_rows", [1, 2])
def test_nobody_is_told_to_stay_while_the_last_rows_are_apart(n_rows: int) -> None:
    other = rare([1.0] * 20, "other")
    found = parting(rare([1.0] * (20 - n_rows) + [50.0] * n_rows), other, "norm")
    assert list(found) == []
    assert found.within == ()
    assert [(one.module, one.n_rows) for one in found.lately] == [("m", n_rows)]
    since = 20 * (20 - n_rows)
    assert found.text.startswith(f"Apart from other since step {since}: m · norm ×")
    assert found.text.endswith(f", in {n_rows} of 3 rows that are wanted")
    assert repr(found).splitlines()[1].endswith(f", in {n_rows} of 3 rows")


@pytest.mark.parametrize("lost", [np.nan, np.inf])
@pytest.mark.parametrize("n_rows", [1, 2, 7])
@pytest.mark.parametrize("gap", [1, 20])
def test_a_run_that_ends_without_finite_values_always_parts(
    lost: float, n_rows: int, gap: int
) -> None:
    steps = range(0, 20 * gap, gap)
    values = [1.0] * (20 - n_rows) + [lost] * n_rows
    found = parting(
        made("this", {"m": values}, steps=steps),
        made("other", {"m": [1.0] * 20}, steps=steps),
        "norm",
    )
    assert [one.module for one in found] == ["m"]
    assert abs(found[0].step - gap * (20 - n_rows)) <= gap * 2
    assert found.text.endswith("m · norm ×∞")


def test_runs_that_are_both_lost_at_the_end_stay_together() -> None:
    values = [1.0] * 15 + [np.nan] * 5
    assert parting(rare(values), rare(values, "other"), "norm").text == "They stay within ×2 at m"


def test_a_value_that_is_lost_and_comes_back_parts_nothing() -> None:
    values = [1.0] * 10 + [np.nan] + [1.0] * 9
    assert list(parting(rare(values), rare([1.0] * 20, "other"), "norm")) == []


@pytest.mark.parametrize(("gap", "stands"), [(10, True), (40, True), (41, False), (80, False)])
def test_a_value_stands_over_four_usual_distances_and_no_more(gap: int, stands: bool) -> None:
    """This run is measured at every tenth step, and once after a longer gap."""
    steps = [*range(0, 101, 10), *range(100 + gap, 300, 10)]
    this = made("this", {"m": np.ones(len(steps))}, steps=steps)
    within = 100 + gap - 1
    other = made("other", {"m": np.ones(4)}, steps=[0, 50, within, 250])
    (pairs,) = row_pairs(this, Members(this, [other], "step"), "norm", ["m"])
    known = dict(zip(pairs.steps.tolist(), ~np.isnan(pairs.this[0]), strict=True))
    assert known == {0: True, 50: True, within: stands, 250: True}


def test_runs_whose_modules_took_turns_at_different_steps_are_compared_at_all_modules() -> None:
    """Each is compared with its latest value, not older than a round."""
    names, n_steps, n_turns = [f"m{i}" for i in range(8)], 48, 4
    tables, runs = [], []
    for shift in (0, 3):
        table = np.arange(n_steps)[:, None] + np.arange(8.0)
        turn = np.arange(8) // 2
        gone = (np.arange(n_steps)[:, None] + shift) % n_turns != turn
        tables.append(table)
        shown = np.where(gone, NOT_MEASURED, table.astype(np.float32))
        stream = FakeStream("every_1", names, ["norm"])
        stream.append(range(n_steps), norm=shown)
        run = Made("run", [stream], names)
        detail = json.dumps({"every": {"norm": n_turns}, "turns": n_turns})
        run.events = (Event(-1, 0, "budget", "", detail),)
        runs.append(run)
    (pairs,) = row_pairs(runs[0], Members(runs[0], [runs[1]], "step"), "norm", names)
    late = pairs.steps >= n_turns - 1
    for found in (pairs.this[:, late], pairs.others[0][:, late]):
        age = tables[0][pairs.steps[late].astype(int)].T - found
        assert age.min() == 0
        assert age.max() == n_turns - 1
    assert len(pairs.steps) == n_steps
