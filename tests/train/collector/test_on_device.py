"""On an accelerator: nothing waits in a step, and the numbers are those of the host."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

from notebook_probe import DataCollector, OptimizerSeries, StepFunction
from notebook_probe.train.collector.transfer import OnDevice
from tests.models import floats, made, mlp
from tests.run.accelerator import Accelerator, copies, moved, on_device, waits

KEYS = ("optimizer_grads_l2_collector", "trainer_log_step_size_l2_collector")


def collect(kind: torch.dtype, values: list[float], policy: int) -> dict[str, Any]:
    collector = DataCollector()
    (collector.keep_n_points(policy) if policy else collector.collect_all())

    @StepFunction
    def step(number: int, value: float) -> None:
        changing = on_device(torch.tensor(value, dtype=torch.float64).to(kind))
        collector.collect(changing, "value")
        if number % 3 == 0:  # from the host, in between
            collector.collect(-1.0, "value")
        changing.zero_()

    collector.attach_to_executor(step)
    for number, value in enumerate(values):
        step(number, value)
    in_training = len(waits), [*copies]
    first = collector.get_series("value")
    in_reading = len(waits), len(copies) - len(in_training[1])
    again = collector.get_series("value")
    return {
        "in training": in_training,
        "in reading": in_reading,
        "first": first,
        "again": again,
        "waited again": len(waits),
    }


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16, torch.int64])
def test_numbers_are_copied_many_at_a_time_and_come_in_order(
    accelerator: Accelerator, kind: torch.dtype
) -> None:
    values = [float(number) for number in range(600)]
    told = accelerator.run(collect, kind, values, 0)
    want = []
    for number, value in enumerate(values):
        exact = torch.tensor(value, dtype=torch.float64).to(kind).double().item()
        want += [(number, exact)] + ([(number, -1.0)] if number % 3 == 0 else [])
    assert told["in training"] == (0, [256, 256])
    assert [*zip(*told["first"], strict=True)] == want
    assert told["in reading"] == (0, 1)  # what was left, in one copy
    assert told["again"] == told["first"]
    assert told["waited again"] == 0


def test_thinning_goes_on_while_numbers_are_on_their_way(accelerator: Accelerator) -> None:
    values = [number / 3 for number in range(700)]
    collector = DataCollector().keep_n_points(7)

    @StepFunction
    def step(number: int, value: float) -> None:
        collector.collect(value, "value")
        if number % 3 == 0:
            collector.collect(-1.0, "value")

    collector.attach_to_executor(step)
    for number, value in enumerate(values):
        step(number, value)
    told = accelerator.run(collect, torch.float64, values, 7)
    assert told["first"] == collector.get_series("value")
    assert told["in training"][0] == 0


def read_each_step() -> tuple[int, list[float]]:
    collector = DataCollector().collect_all()
    step = StepFunction(lambda value: collector.collect(on_device(value), "value"))
    collector.attach_to_executor(step)
    for number in range(20):
        step(torch.tensor(float(number)))
        collector.get_series("value")
    kept = sum(isinstance(one, OnDevice) for one in gc.get_objects())
    return kept, collector.get_series_values("value")


def test_what_has_been_read_is_on_the_device_no_longer(accelerator: Accelerator) -> None:
    assert accelerator.run(read_each_step) == (0, [float(number) for number in range(20)])


def train(is_on_device: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    model, inputs = made(mlp), floats(5, 4)
    model = moved(model) if is_on_device else model  # type: ignore[assignment]
    placed = on_device if is_on_device else torch.Tensor.clone
    collector = DataCollector().collect_all()
    collector.attach_to_executor(model)
    series = OptimizerSeries(model, dict.fromkeys(KEYS, collector))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(placed(inputs(step))).square().mean()
        loss.backward()
        collector.collect(loss, "loss")
        optimizer.step()
    series.remove()
    waited = len(waits), len(copies)
    found = {name: collector.get_series_values(name) for name in collector.get_all_series_names()}
    return {"waited": waited, "found": found}


def test_what_an_optimizer_does_waits_for_nothing(accelerator: Accelerator) -> None:
    told, want = accelerator.run(train, True), accelerator.run(train, False)
    assert told["waited"] == (0, 0)
    assert told["found"].keys() == want["found"].keys()
    for name, values in want["found"].items():
        assert told["found"][name] == pytest.approx(values, rel=1e-6), name
