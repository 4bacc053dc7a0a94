"""Which units are due: against lists written out by brute force."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.summary.outlook import Outlook, Units
from notebook_probe.summary.settings import CollectorSettings
from notebook_probe.summary.units import DueRule, automatic_units


def of_data(total: int, freq: int, first: int = 1) -> list[int]:
    rule = DueRule(freq)
    return [unit for unit in range(first, total + 1) if rule.due(unit, first, total).data]


def of_tensors(total: int | None, last: int, rule: DueRule, first: int = 1) -> list[int]:
    return [unit for unit in range(first, last + 1) if rule.due(unit, first, total).tensors]


def brute_automatic(total: int, freq: int) -> set[int]:
    """The rule as it is told: multiples where they are few, else twenty that lie evenly."""
    multiples = [unit for unit in range(total + 1) if unit % freq == 0]
    if len(multiples) <= 20:
        return {*multiples}
    apart = total // 19
    if apart == 1:
        return {*range(21)}
    return {*islice((i * apart for i in range(10**6)), 20)}


@pytest.mark.parametrize(
    ("total", "freq", "n"), [(600, 10, 61), (20, 10, 3), (600, 1, 600), (9, 10, 1)]
)
def test_data_is_due_at_the_first_unit_and_at_every_multiple(total: int, freq: int, n: int) -> None:
    due = of_data(total, freq)
    assert due == sorted({1, *(unit for unit in range(1, total + 1) if unit % freq == 0)})
    assert len(due) == n


@given(total=st.integers(1, 5000), freq=st.integers(1, 300), first=st.integers(1, 400))
def test_automatic_tensors_are_those_of_the_list(total: int, freq: int, first: int) -> None:
    due = of_tensors(total, total, DueRule(freq), first)
    expected = {unit for unit in brute_automatic(total, freq) if first <= unit <= total}
    assert due == sorted(expected | ({first} if first <= total else set()))


@given(total=st.integers(1, 10**6), freq=st.integers(1, 10**4))
def test_a_training_never_has_more_than_twenty_automatic_tensor_units(
    total: int, freq: int
) -> None:
    units = {unit for unit in automatic_units(total, freq) if 1 <= unit <= total} | {1}
    assert 1 <= len(units) <= 20


def test_600_units_at_10_have_20_automatic_tensor_units() -> None:
    assert of_tensors(600, 600, DueRule(10)) == [1, *range(31, 600, 31)]
    assert len(of_tensors(600, 600, DueRule(10))) == 20


@given(total=st.integers(1, 300), freq=st.integers(1, 50), first=st.integers(1, 60))
def test_a_tensor_frequency_is_a_range_and_the_first_unit(
    total: int, freq: int, first: int
) -> None:
    due = of_tensors(total, total, DueRule(10, freq), first)
    in_range = {unit for unit in range(0, total + 1, freq) if first <= unit}
    assert due == sorted((in_range - {0}) | ({first} if first <= total else set()))


def test_of_an_unknown_total_ever_fewer_are_due_counted_from_the_first() -> None:
    due = of_tensors(None, 200, DueRule(10), first=7)
    assert [unit - 7 for unit in due] == [
        *range(20), *range(20, 40, 2), *range(40, 80, 4), *range(80, 160, 8), *range(160, 194, 16)
    ]  # fmt: skip


@given(stop=st.integers(1, 199), freq=st.integers(1, 30))
def test_a_resumed_training_is_the_uninterrupted_one_and_its_first_unit(
    stop: int, freq: int
) -> None:
    whole = of_data(200, freq)
    resumed = [unit for unit in of_data(200, freq) if unit <= stop] + of_data(200, freq, stop + 1)
    assert resumed == sorted({*whole, stop + 1})


def collects(tmp_path: object, **options: object) -> CollectorSettings:
    return CollectorSettings.read(str(tmp_path), **options)  # type: ignore[arg-type]


def test_an_epoch_is_due_at_its_last_step_alone(tmp_path: object) -> None:
    units = Units(collects(tmp_path, collect_freq=2, unit="epoch"))
    due = []
    for epoch in range(1, 7):
        units.outlook = Outlook(epoch=epoch, epoch_end=5 * epoch - 1, n_epochs=6)
        due += [step for step in range(5 * epoch - 5, 5 * epoch) if units.due(step).data]
    assert due == [4, 9, 19, 29]  # epochs 1, 2, 4, 6


def test_units_are_the_loops_where_the_record_counts_otherwise(tmp_path: object) -> None:
    units = Units(collects(tmp_path))
    units.outlook = Outlook(end_step=20, shift=1000)
    due = [step for step in range(1000, 1020) if units.due(step).data]
    assert due == [1000, 1009, 1019]


@given(asked=st.lists(st.tuples(st.integers(0, 60), st.sampled_from([None, 40, 90])), max_size=40))
def test_whoever_asks_of_a_step_and_how_often_the_answer_is_of_what_is_known_now(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[int, int | None]]
) -> None:
    settings = collects(tmp_path_factory.getbasetemp() / "units")
    units = Units(settings)
    first = asked[0][0] + 1 if asked else 1
    rule = DueRule(settings.collect_freq, settings.collect_tensor_freq)
    for step, end in asked:
        units.outlook = Outlook(end)
        assert units.due(step) == units.due(step) == rule.due(step + 1, first, end)


@pytest.mark.parametrize(("total", "n"), [(798, 20), (799, 20), (800, 20)])
def test_twenty_multiples_are_few_enough_and_twenty_one_are_not(total: int, n: int) -> None:
    """With 0, which is none: up to 799 they are those of 40, at 800 they are those of 42."""
    apart = 40 if total < 800 else 42
    assert [*automatic_units(total, 40)] == [apart * place for place in range(n)]
