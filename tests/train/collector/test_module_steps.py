"""Where the steps of a bare module begin and end, in every kind of loop."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD, Optimizer
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint

from notebook_probe import DataCollector
from tests.probes.parity import bits
from tests.run.conftest import Watch
from tests.train.collector.loops import Telling, given, sgd, train


def telling(phase: Any = "training") -> tuple[Telling, DataCollector, Optimizer]:
    """A model, and the collector that is attached to it."""
    collector = DataCollector().collect_all()
    model = Telling(collector)
    collector.attach_to_executor(model, phase=phase)
    return model, collector, sgd(model)


def test_a_step_is_complete_when_the_optimizer_has_stepped() -> None:
    model, collector, optimizer = telling()
    model(given(1.0)).sum().backward()
    assert collector.get_series_values("input") == []
    assert collector.step == 0
    optimizer.step()
    assert collector.get_series("input") == ([0], [1.0])


def test_what_the_loop_names_belongs_to_the_step_before_and_after_its_update() -> None:
    model, collector, optimizer = telling()
    for value in (1.0, 2.0, 3.0):
        loss = model(given(value)).sum()
        collector.collect(value / 2, "before")
        loss.backward()
        optimizer.step()
        collector.collect(value / 4, "after")
    assert collector.get_series("before") == ([0, 1, 2], [0.5, 1.0, 1.5])
    assert collector.get_series("after") == ([0, 1, 2], [0.25, 0.5, 0.75])
    assert collector.get_all_series_names() == ["input", "before", "after"]


def test_micro_batches_are_values_of_one_step() -> None:
    model, collector, optimizer = telling()
    for step in range(2):
        for part in range(3):
            model(given(10.0 * step + part)).sum().backward()
        optimizer.step()
    assert collector.get_series("input") == ([0, 0, 0, 1, 1, 1], [0, 1, 2, 10, 11, 12])


def test_a_skipped_update_goes_together_with_the_next() -> None:
    model, collector, optimizer = telling()
    train(model, optimizer, [1.0])
    model(given(2.0)).sum().backward()  # and no step
    train(model, optimizer, [3.0])
    assert collector.get_series("input") == ([0, 1, 1], [1.0, 2.0, 3.0])


def test_so_does_one_that_a_gradient_scaler_skips() -> None:
    model, collector, optimizer = telling()
    scaler = torch.amp.GradScaler("cpu")
    for value in (1.0, float("inf"), 3.0):
        optimizer.zero_grad()
        scaler.scale(model(given(value)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert collector.get_series("input") == ([0, 1, 1], [1.0, float("inf"), 3.0])


def test_every_run_of_a_closure_is_of_the_one_step() -> None:
    model, collector, _ = telling()
    optimizer = LBFGS(model.parameters(), max_iter=3)
    calls: list[Tensor] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model(given(float(len(calls)))).square().sum()
        calls.append(loss)
        loss.backward()
        return loss

    for step in range(2):
        optimizer.step(closure)
        assert collector.get_series("input")[0].count(step) >= 1
    steps, values = collector.get_series("input")
    assert len(calls) > 2
    assert values == [*map(float, range(len(calls)))]
    assert steps == sorted(steps)
    assert {*steps} == {0, 1}


def test_two_optimizers_in_turn_are_one_step() -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    collector.attach_to_executor(model)
    optimizers = [SGD([weight], lr=0.1) for weight in model.parameters()]
    for value in (1.0, 2.0):
        model(given(value)).sum().backward()
        for number, optimizer in enumerate(optimizers):
            optimizer.step()
            collector.collect(number, "optimizer")
    assert collector.get_series("input") == ([0, 1], [1.0, 2.0])
    assert collector.get_series("optimizer") == ([0, 0, 1, 1], [0, 1, 0, 1])


def test_an_optimizer_of_another_model_ends_no_step() -> None:
    model, collector, optimizer = telling()
    other = nn.Linear(2, 1)
    model(given(1.0)).sum().backward()
    train(other, sgd(other), [5.0, 6.0])
    assert collector.get_series_values("input") == []
    optimizer.step()
    assert collector.get_series("input") == ([0], [1.0])


def validate(model: nn.Module, values: list[float]) -> None:
    model.eval()
    with torch.no_grad():
        for value in values:
            model(given(value))
    model.train()


def test_validation_is_left_out_of_the_training_and_counted() -> None:
    model, collector, optimizer = telling()
    for value in (1.0, 2.0):
        train(model, optimizer, [value])
        validate(model, [100.0, 200.0])
    assert collector.get_series("input") == ([0, 1], [1.0, 2.0])
    assert collector.missing == {"outside of a step": 4}
    assert "4 outside of a step" in repr(collector)


def test_what_the_loop_names_while_it_validates_is_left_out_too() -> None:
    model, collector, optimizer = telling()
    train(model, optimizer, [1.0])
    model.eval()
    collector.collect(0.5, "accuracy")
    model.train()
    collector.collect(0.25, "accuracy")
    assert collector.get_series("accuracy") == ([0], [0.25])


def test_evaluations_are_steps_of_the_state_that_is_evaluated() -> None:
    model, collector, optimizer = telling("eval")
    validate(model, [1.0])
    collector.collect(0.5, "too late")
    train(model, optimizer, [100.0, 200.0])
    validate(model, [2.0, 3.0])
    train(model, optimizer, [300.0])
    validate(model, [4.0])
    assert collector.get_series("input") == ([0, 2, 2, 3], [1.0, 2.0, 3.0, 4.0])
    assert collector.get_all_series_names() == ["input"]


def test_what_the_loop_makes_of_an_evaluated_batch_is_of_that_evaluation() -> None:
    model, collector, optimizer = telling("eval")
    train(model, optimizer, [1.0])
    model.eval()
    with torch.no_grad():
        for value in (2.0, 3.0):
            output = model(given(value))
            collector.collect(output.numel() * value, "made of it")
    model.train()
    model(given(9.0))
    collector.collect(9.0, "made of it")
    assert collector.get_series("made of it") == ([1, 1], [2.0, 3.0])


def test_an_evaluation_that_raises_is_none() -> None:
    class Failing(Telling):
        def forward(self, x: Tensor) -> Tensor:
            out = super().forward(x)
            if x.sum() < 0:
                raise KeyboardInterrupt
            return out

    collector = DataCollector().collect_all()
    model = Failing(collector).eval()
    collector.attach_to_executor(model, phase="eval")
    with torch.no_grad():
        for value in (1.0, -2.0, 3.0):
            try:
                model(given(value))
            except KeyboardInterrupt:
                assert collector.get_series_values("input") == [1.0]
    assert collector.get_series("input") == ([0, 0], [1.0, 3.0])


def test_a_model_that_calls_itself_is_evaluated_once() -> None:
    class Recursive(Telling):
        def forward(self, x: Tensor) -> Tensor:
            out = super().forward(x)
            if x.sum() > 1:
                self(x - given(1.0))
            if x.sum() == 2:
                raise ValueError("two")
            return out

    collector = DataCollector().collect_all()
    model = Recursive(collector).eval()
    collector.attach_to_executor(model, phase="eval")
    with torch.no_grad():
        model(given(1.0))
        with pytest.raises(ValueError, match="two"):
            model(given(2.0))
        with pytest.raises(ValueError, match="two"):
            model(given(3.0))
        model(given(0.5))
    assert collector.get_series_values("input") == [1.0, 0.5]


def test_after_an_interrupted_forward_training_goes_on() -> None:
    class Interrupted(Telling):
        def forward(self, x: Tensor) -> Tensor:
            if x.sum() < 0:
                raise KeyboardInterrupt
            return super().forward(x)

    collector = DataCollector().collect_all()
    model = Interrupted(collector)
    collector.attach_to_executor(model)
    optimizer = sgd(model)
    train(model, optimizer, [1.0])
    validating = model.eval()
    with pytest.raises(KeyboardInterrupt), torch.no_grad():
        validating(given(-1.0))
    model.train()
    collector.collect(0.5, "rate")
    train(model, optimizer, [2.0])
    assert collector.get_series("input") == ([0, 1], [1.0, 2.0])
    assert collector.get_series("rate") == ([0], [0.5])


def test_a_frozen_part_inside_of_the_training_counts() -> None:
    collector = DataCollector().collect_all()
    part = Telling(collector).eval()
    model = nn.Sequential(nn.Linear(2, 2), part)
    collector.attach_to_executor(model)
    optimizer = sgd(model)
    for _ in range(2):
        model.train()
        part.eval()
        model(given(1.0)).sum().backward()
        optimizer.step()
    assert collector.get_series_steps("input") == [0, 1]


def test_a_copy_that_is_evaluated_in_between_is_no_matter_of_the_training() -> None:
    """A copy's forward may reach the very collector: where that is a global of the notebook."""
    collector = DataCollector().collect_all()

    class CollectingInput(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            collector.collect(x.sum(), "input")
            return super().forward(x)

    model = CollectingInput(2, 1)
    collector.attach_to_executor(model)
    average, optimizer = AveragedModel(model), sgd(model)
    for value in (1.0, 2.0):
        train(model, optimizer, [value])
        average.update_parameters(model)
        with torch.no_grad():
            average.eval()(given(50.0))
    assert collector.get_series("input") == ([0, 1], [1.0, 2.0])


def test_parts_that_a_loop_calls_one_by_one_make_the_same_steps() -> None:
    collector = DataCollector().collect_all()
    model = nn.ModuleDict({"first": Telling(collector), "last": nn.Linear(1, 1)})
    collector.attach_to_executor(model)
    optimizer, criterion = sgd(model), nn.MSELoss()
    for value in (1.0, 2.0, 3.0):
        out = model["last"](model["first"](given(value)))
        loss = criterion(out, torch.zeros_like(out))
        collector.collect(value, "before")
        loss.backward()
        optimizer.step()
        criterion(out.detach(), torch.zeros_like(out))
        collector.collect(value, "after")
        model.eval()["first"](given(100.0))
        model.train()
    want = ([0, 1, 2], [1.0, 2.0, 3.0])
    assert [collector.get_series(name) for name in ("input", "before", "after")] == [want] * 3


def test_what_a_run_does_to_measure_is_no_training(watch: Watch) -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    run = watch(model, probes=None)
    collector.attach_to_executor(model)
    run.probe_batch(given(9.0), torch.zeros(1, 1), nn.functional.mse_loss)
    run.attach("", "sharpness")
    train(model, sgd(model), [1.0, 2.0])
    run.close()
    assert not np.isnan(run.series("", "sharpness").values).any()
    assert collector.get_series("input") == ([0, 1], [1.0, 2.0])


class Checkpointed(Telling):
    def __init__(self, *collectors: DataCollector, reentrant: bool) -> None:
        super().__init__(*collectors)
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        def of_a_function(x: Tensor) -> Tensor:
            self.collectors[0].collect(x.sum(), "of a function")
            return x * 2

        base = super().forward
        x = x.clone().requires_grad_()
        x = checkpoint(of_a_function, x, use_reentrant=self.reentrant)
        out: Tensor = checkpoint(base, x, use_reentrant=self.reentrant)
        out.register_hook(lambda g: self.collectors[0].collect(g.sum(), "gradient"))
        return out


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpointed_segment_counts_once_and_a_hook_of_a_gradient_does(reentrant: bool) -> None:
    collector = DataCollector().collect_all()
    model = Checkpointed(collector, reentrant=reentrant)
    collector.attach_to_executor(model)
    train(model, sgd(model), [1.0, 2.0])
    assert collector.get_series("input") == ([0, 1], [2.0, 4.0])
    assert collector.get_series("of a function") == ([0, 1], [1.0, 2.0])
    assert collector.get_series("gradient") == ([0, 1], [1.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["training", "eval"])
def test_a_compiled_model_tells_the_same(phase: Any) -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    compiled: Any = torch.compile(model, backend="eager")
    collector.attach_to_executor(compiled, phase=phase)
    optimizer = sgd(model)
    for value in (1.0, 2.0):
        train(compiled, optimizer, [value])
        validate(compiled, [10 * value])
    want = ([0, 1], [1.0, 2.0]) if phase == "training" else ([1, 2], [10.0, 20.0])
    assert collector.get_series("input") == want


def test_a_collector_that_is_not_attached_breaks_no_graph() -> None:
    model = Telling(DataCollector().collect_all())
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert torch.equal(compiled(given(1.0)), model(given(1.0)))


def test_the_weights_are_the_same_with_and_without_a_collector() -> None:
    def trained(setup: Callable[[Telling], object]) -> dict[str, Any]:
        torch.manual_seed(3)
        model = Telling(DataCollector().keep_n_points(4))
        kept = setup(model)
        train(model, sgd(model), [0.3, -1.7, 2.9, 0.1, 5.0])
        validate(model, [3.0])
        assert kept is not model
        return {name: bits(value) for name, value in model.state_dict().items()}

    def attached(model: Telling) -> object:
        return model.collectors[0].attach_to_executor(model)

    assert trained(attached) == trained(copy.copy)
