"""Which values are kept: every rule against the plainest program of its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from torch import nn

from notebook_probe import DataCollector, StepFunction
from tests.train.collector.loops import collected

amounts = st.integers(2, 40)
lengths = st.integers(0, 400)


def thinned(n: int, length: int) -> list[int]:
    """Value numbers that are kept: every second one goes whenever there are n."""
    kept: list[int] = []
    stride = 1
    for index in range(length):
        if index % stride == 0:
            kept.append(index)
        if len(kept) == n:
            kept = [kept[position] for position in range(0, n, 2)]
            stride *= 2
    return kept


@given(amounts, lengths)
@example(5, 5)
@example(2, 3)
@example(7, 300)
def test_keeping_n_points_halves_them_whenever_there_are_n(n: int, length: int) -> None:
    kept = collected(DataCollector().keep_n_points(n), map(float, range(length)))
    assert kept == thinned(n, length)


@pytest.mark.slow
@given(amounts, st.integers(1, 400))
def test_kept_points_are_all_multiples_of_one_stride_and_fewer_than_n(n: int, length: int) -> None:
    collector = DataCollector().keep_n_points(n)
    kept = collected(collector, map(float, range(length)))
    strides = [2**k for k in range(10) if [*range(0, length, 2**k)] == kept]
    assert len(strides) >= 1, kept
    assert len(kept) < n
    assert kept[0] == 0.0
    if length >= n:
        assert len(kept) >= -(-n // 2)
    assert collector.get_series_steps("values") == kept


@given(st.integers(1, 50), lengths)
def test_every_n_keeps_the_values_whose_number_is_a_multiple(n: int, length: int) -> None:
    kept = collected(DataCollector().every_n_steps(n), map(float, range(length)))
    assert kept == [*range(length)][::n]


@pytest.mark.slow
@given(lengths)
def test_all_are_all(length: int) -> None:
    kept = collected(DataCollector().collect_all(), map(float, range(length)))
    assert kept == [*range(length)]


@pytest.mark.slow
@given(
    st.one_of(
        st.just(lambda collector: collector.collect_all()),
        st.integers(1, 9).map(lambda n: lambda collector: collector.every_n_steps(n)),
        amounts.map(lambda n: lambda collector: collector.keep_n_points(n)),
    ),
    st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=60),
)
def test_series_are_counted_by_themselves_and_keep_the_order_of_their_step(
    setter: Callable[[DataCollector], DataCollector], steps: list[list[str]]
) -> None:
    """Several values in a step, and series that are not in every step."""
    collector = setter(DataCollector())
    sent: dict[str, list[tuple[int, float]]] = {}

    @StepFunction
    def run(step: int, names: list[str]) -> None:
        for place, name in enumerate(names):
            sent.setdefault(name, []).append((step, 10.0 * step + place))
            collector.collect(10.0 * step + place, name)

    with collector.attach_to_executor(run):
        for step, names in enumerate(steps):
            run(step, names)
    assert collector.get_all_series_names() == [*sent]
    for name, came in sent.items():
        which = collected(setter(DataCollector()), map(float, range(len(came))))
        want = [came[int(index)] for index in which]
        assert [*zip(*collector.get_series(name), strict=True)] == want


@pytest.mark.parametrize(
    ("setup", "message"),
    [
        (lambda c: c, r"^0 policies; allowed: exactly one of collect_all\(\), every_n_steps\(n\)"),
        (
            lambda c: c.collect_all().keep_n_points(4),
            r"^2 policies: collect_all\(\), keep_n_p.*4\)",
        ),
        (lambda c: c.collect_all().keep_n_points(4).every_n_steps(2), "^3 policies: "),
        (lambda c: c.keep_n_points(0).every_n_steps(-3), "^0 policies; "),
        (lambda c: c.keep_n_points(7).keep_n_points(0), "^0 policies; "),
        (lambda c: c.keep_n_points(1), r"^keep_n_points\(1\): .*; allowed: from 2"),
    ],
)
def test_policies_are_checked_as_the_collector_is_attached(
    setup: Callable[[DataCollector], DataCollector], message: str
) -> None:
    collector = setup(DataCollector())
    model = nn.Linear(2, 1)
    with pytest.raises(ValueError, match=message):
        collector.attach_to_executor(model)
    assert not model._forward_pre_hooks
    assert not model._forward_hooks


@pytest.mark.parametrize("given", [2.5, True, "ten", None])
def test_an_amount_that_is_no_whole_number_is_a_type_error_as_it_is_attached(given: Any) -> None:
    collector = DataCollector().every_n_steps(given)
    with pytest.raises(TypeError, match=r"every_n_steps\(.*\): a whole number is expected"):
        collector.attach_to_executor(nn.Linear(2, 1))


def test_a_setter_again_overwrites_and_the_old_spelling_is_the_same() -> None:
    kept = collected(DataCollector().every_n_steps(7).every_n_steps(2), map(float, range(5)))
    assert kept == collected(DataCollector().EveryNSteps(2), map(float, range(5))) == [0, 2, 4]
    assert collected(DataCollector().KeepNPoints(3), map(float, range(5))) == [0, 4]
    assert collected(DataCollector().CollectAll().KeepNPoints(0), [1.0, 2.0]) == [1, 2]


def test_series_of_one_policy_are_not_gone_on_with_by_another() -> None:
    collector = DataCollector().keep_n_points(4)
    collected(collector, [1.0, 2.0])
    collector.keep_n_points(9)
    with pytest.raises(
        ValueError, match=r"keep_n_points\(9\) on .* keep_n_points\(4\), or another"
    ):
        collector.attach_to_executor(nn.Linear(2, 1))
    collector.keep_n_points(4)
    assert collected(collector, [3.0]) == [1.0, 2.0, 3.0]
    assert collector.get_series_steps("values") == [0, 1, 2]
