"""Several threads: at one target, at several, and at one collector that somebody reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from notebook_probe import DataCollector, StepFunction
from tests.train.collector.loops import Telling, given, sgd, train


def on_threads(works: list[Callable[[], None]]) -> None:
    """Run all at the same time; an error is raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result()


def test_models_that_are_trained_side_by_side_keep_their_own_values() -> None:
    collectors = [DataCollector().collect_all() for _ in range(4)]
    models = [Telling(collector) for collector in collectors]
    for collector, model in zip(collectors, models, strict=True):
        collector.attach_to_executor(model)
    values = [[float(100 * number + step) for step in range(40)] for number in range(4)]

    def work(number: int) -> Callable[[], None]:
        return lambda: train(models[number], sgd(models[number]), values[number])

    on_threads([work(number) for number in range(4)])
    for collector, own in zip(collectors, values, strict=True):
        assert collector.get_series("input") == ([*range(40)], own)


def test_calls_of_one_function_on_many_threads_are_steps_of_their_own() -> None:
    collector = DataCollector().collect_all()
    meeting = threading.Barrier(4)

    @StepFunction
    def step(value: int) -> None:
        collector.collect(value, "value")
        meeting.wait()  # all have begun before any goes on
        collector.collect(value + 0.5, "value")
        if value % 2:
            raise ValueError(value)

    def attempt(value: int) -> None:
        with nullcontext() if value % 2 == 0 else pytest.raises(ValueError, match=str(value)):
            step(value)

    collector.attach_to_executor(step)
    on_threads([lambda value=value: attempt(value) for value in range(4)])  # type: ignore[misc]
    values = collector.get_series_values("value")
    assert sorted(values) == [0.0, 0.5, 2.0, 2.5]
    assert [values.index(v) + 1 for v in (0.0, 2.0)] == [values.index(v) for v in (0.5, 2.5)]


def test_evaluations_on_many_threads_lose_nothing() -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector).eval()
    collector.attach_to_executor(model, phase="eval")

    def work(number: int) -> None:
        with torch.no_grad():
            for step in range(50):
                model(given(100.0 * number + step))

    on_threads([lambda number=number: work(number) for number in range(4)])  # type: ignore[misc]
    want = [100.0 * number + step for number in range(4) for step in range(50)]
    assert sorted(collector.get_series_values("input")) == want


def test_threads_that_help_a_step_take_part_in_it() -> None:
    collector = DataCollector().collect_all()

    @StepFunction
    def step(x: Tensor) -> None:
        helper = threading.Thread(target=lambda: collector.collect(x.sum(), "of a helper"))
        helper.start()
        helper.join()

    collector.attach_to_executor(step)
    step(given(2.0))
    collector.collect(3.0, "of a helper")  # complete
    step(given(4.0))
    assert collector.get_series("of a helper") == ([0, 1], [2.0, 4.0])


def test_who_reads_while_it_trains_sees_steps_and_values_of_one_moment() -> None:
    collector = DataCollector().keep_n_points(8)
    model = Telling(collector)
    collector.attach_to_executor(model)
    reads = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            reads.append(collector.get_series("input"))

    def work() -> None:
        try:
            train(model, sgd(model), map(float, range(70)))
        finally:
            done.set()

    on_threads([read, work])
    assert all(steps == values and len(steps) < 8 for steps, values in reads)
    assert collector.get_series("input") == ([0, 16, 32, 48, 64], [0, 16, 32, 48, 64])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork")
def test_a_forked_child_collects_nothing_and_the_parent_goes_on() -> None:
    collector = DataCollector().collect_all()
    step = StepFunction(lambda value: collector.collect(value, "value"))
    collector.attach_to_executor(step)
    step(1.0)
    child = os.fork()
    if child == 0:  # no pytest in here: leave at once, whatever happens
        code = 1
        try:
            step(2.0)
            code = int(collector.get_series_values("value") != [1.0])
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    step(3.0)
    assert collector.get_series("value") == ([0, 1], [1.0, 3.0])


def test_attaching_from_many_threads_one_of_them_wins() -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    meeting, refused = threading.Barrier(6), []

    def work() -> None:
        meeting.wait()
        try:
            collector.attach_to_executor(model)
        except ValueError as error:
            refused.append(error)

    on_threads([work] * 6)
    assert len(refused) == 5
    train(model, sgd(model), [1.0])
    assert collector.get_series_values("input") == [1.0]
