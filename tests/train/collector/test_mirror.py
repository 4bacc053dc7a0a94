"""What is collected of a watched model stands in its record, too."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe import DataCollector, StepFunction
from notebook_probe.errors import RecordWarning
from tests.run.conftest import Watch
from tests.train.collector.loops import Telling, given, sgd, train


def recorded(run: nbp.Run, name: str) -> list[float]:
    """What the record has of a number of the whole model."""
    return [*run.series("", name).values]


def test_the_record_has_the_numbers_at_the_same_steps_and_one_of_each(watch: Watch) -> None:
    collector = DataCollector().keep_n_points(3)
    model = Telling(collector)
    optimizer = sgd(model)
    run = watch(model, probes=None)
    collector.attach_to_executor(model)
    for step in range(5):
        optimizer.zero_grad()
        for part in (0.0, 1.0):  # two micro-batches
            model(given(step + part)).sum().backward()
        optimizer.step()
        collector.collect(step / 3, "train/after")
        collector.collect(100.0, "train/after")
    model.eval()(given(50.0))
    run.close()
    assert recorded(run, "input") == [0.5, 1.5, 2.5, 3.5, 4.5]
    np.testing.assert_array_equal(recorded(run, "train/after"), np.float32(np.arange(5) / 3))
    assert collector.get_series_values("input") == [0.0, 4.0]


def test_a_wrapped_model_is_the_one_that_is_watched(watch: Watch) -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    wrapped = nn.DataParallel(model)
    run = watch(wrapped, probes=None)
    collector.attach_to_executor(wrapped)
    train(wrapped, sgd(model), [1.0, 2.0])
    run.close()
    assert collector.get_series("input") == ([0, 1], [1.0, 2.0])
    assert recorded(run, "input") == [1.0, 2.0]


def test_a_collector_that_is_attached_late_counts_as_the_run_does(watch: Watch) -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    optimizer = sgd(model)
    run = watch(model, probes=None)
    train(model, optimizer, [1.0, 2.0, 3.0])
    collector.attach_to_executor(model)
    train(model, optimizer, [4.0, 5.0])
    run.close()
    train(model, optimizer, [6.0])  # and no record any more
    assert collector.get_series("input") == ([3, 4, 5], [4.0, 5.0, 6.0])
    assert recorded(run, "input") == [4.0, 5.0]
    assert run.data["input"]["step"].values[-2:].tolist() == [3, 4]


def test_a_step_function_with_its_model_is_recorded(watch: Watch) -> None:
    model = Telling()
    collector = DataCollector().collect_all()
    optimizer = sgd(model)

    def step(value: float) -> None:
        train(model, optimizer, [value])
        collector.collect(value, "value")

    run = watch(model, probes=None)
    function = StepFunction(step, model)
    collector.attach_to_executor(function)
    for value in (1.5, 2.5):
        function(value)
    run.close()
    assert recorded(run, "value") == [1.5, 2.5]


def test_a_name_that_no_record_has_is_told_of_once_and_collected(watch: Watch) -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    optimizer = sgd(model)
    run = watch(model, probes=None)
    collector.attach_to_executor(model)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for value in (1.0, 2.0):
            train(model, optimizer, [value])
            collector.collect(value, "step")
    assert [one.category for one in told] == [RecordWarning]
    assert str(told[0].message).startswith("series 'step' is collected, but not recorded: ")
    assert collector.get_series_values("step") == [1.0, 2.0]
    run.close()
    assert recorded(run, "input") == [1.0, 2.0]


def test_nobody_watches_and_nothing_is_recorded() -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    collector.attach_to_executor(model)
    train(model, sgd(model), [1.0])
    assert collector.get_series_values("input") == [1.0]


@pytest.mark.parametrize("second", ["collector", "loop"])
def test_two_writers_of_one_series_have_both_of_their_numbers_in_the_record(
    watch: Watch, second: str
) -> None:
    model = nn.Linear(2, 1)
    optimizer, run = sgd(model), watch(model, probes=None)
    n_collectors = 2 if second == "collector" else 1
    collectors = [DataCollector().collect_all() for _ in range(n_collectors)]
    handles = [one.attach_to_executor(model) for one in collectors]

    def train_watched() -> None:
        for step in range(3):
            loss = model(given(float(step))).sum()
            for factor, collector in zip((1.0, 10.0), collectors, strict=False):
                collector.collect(factor * step, "x")
            loss.backward()
            optimizer.step()
            if second == "loop":
                run.log(x=10.0 * step)

    with pytest.warns(nbp.ReplacedWarning, match=r"run\.series\('', 'x_2'\)") as told:
        train_watched()
    assert len(told) == 1
    for handle in handles:
        handle.remove()
    assert recorded(run, "x") == [0.0, 1.0, 2.0]
    assert recorded(run, "x_2") == [0.0, 10.0, 20.0]


def test_a_collector_that_is_made_again_goes_on_with_the_series(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    optimizer, run = sgd(model), watch(model, probes=None)
    for step in range(2):
        collector = DataCollector().collect_all()
        with collector.attach_to_executor(model):
            loss = model(given(float(step))).sum()
            collector.collect(float(step), "x")
            loss.backward()
            optimizer.step()
    run.close()
    assert recorded(run, "x") == [0.0, 1.0]
