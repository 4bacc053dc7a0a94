"""Attaching, detaching, and what becomes of a collector whose target is gone."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
import torch
from torch import nn

from notebook_probe import DataCollector, StepFunction
from tests.train.collector.loops import Telling, given, sgd, train


class Side:
    """One side of a trainer, in the words of the protocol."""

    def __init__(self) -> None:
        self.acts: dict[str, list[Callable[[], None]]] = {"begin": [], "end": []}

    def on_begin(self, act: Callable[[], None], /) -> Callable[[], None]:
        self.acts["begin"].append(act)
        return lambda: self.acts["begin"].remove(act)

    def on_end(self, act: Callable[[], None], /) -> Callable[[], None]:
        self.acts["end"].append(act)
        return lambda: self.acts["end"].remove(act)

    def tell(self, what: str) -> None:
        for act in [*self.acts[what]]:
            act()


class Trainer:
    """Trains and evaluates; a scaler may skip an update."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.training, self.evaluation = Side(), Side()

    def train(self, value: float, skipped: bool = False) -> None:
        self.model.train()
        self.training.tell("begin")
        self.model(given(value))
        if not skipped:
            self.training.tell("end")

    def eval(self, value: float) -> None:
        was_training = self.model.training
        self.model.eval()
        with torch.no_grad():
            self.evaluation.tell("begin")
            self.model(given(value))
            self.evaluation.tell("end")
        self.model.train(was_training)


@dataclass
class Loop:
    trainer: Any = field(default=None)
    n_updates: int = 0

    def train(self, value: float) -> None:
        self.trainer.train(value)
        self.n_updates += 1


def test_several_collectors_of_one_target_get_each_its_own_values() -> None:
    a, b = DataCollector().collect_all(), DataCollector().every_n_steps(2)
    c = DataCollector().keep_n_points(3)
    model = Telling(a, b, c)
    handles = [one.attach_to_executor(model) for one in (a, b, c)]
    optimizer = sgd(model)
    train(model, optimizer, [1.0, 2.0, 3.0])
    handles[1].remove()
    train(model, optimizer, [4.0, 5.0])
    assert a.get_series("input") == ([0, 1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert b.get_series("input") == ([0, 2], [2.0, 6.0])
    assert c.get_series("input") == ([0, 4], [3.0, 15.0])
    assert len({one.uuid for one in (a, b, c)}) == 3


def test_nothing_is_collected_before_attaching_and_after_removing() -> None:
    collector = DataCollector().collect_all()
    collector.collect("nothing is looked at", 3)  # type: ignore[arg-type]
    model = Telling(collector)
    optimizer = sgd(model)
    train(model, optimizer, [1.0])
    with collector.attach_to_executor(model) as handle:
        train(model, optimizer, [2.0])
    handle.remove()
    train(model, optimizer, [3.0])
    assert collector.get_series_values("input") == [2.0]
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    assert repr(handle) == "<Attachment to Telling, removed>"


def test_removing_within_a_step_drops_what_it_has_so_far() -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    optimizer = sgd(model)
    handle = collector.attach_to_executor(model)
    train(model, optimizer, [1.0])
    model(given(2.0)).sum().backward()
    handle.remove()
    optimizer.step()
    with collector.attach_to_executor(model):  # goes on where it ended
        train(model, optimizer, [3.0])
    assert collector.get_series("input") == ([0, 1], [1.0, 3.0])


@pytest.mark.parametrize("other", [False, True], ids=["the same target", "another one"])
def test_a_collector_has_one_target_at_a_time(other: bool) -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    handle = collector.attach_to_executor(model)
    hooks = len(model._forward_hooks)
    message = r"<DataCollector collect_all\(\): 0 series, attached>: attached already; allowed: one"
    with pytest.raises(ValueError, match=message):
        collector.attach_to_executor(Telling() if other else model)
    assert len(model._forward_hooks) == hooks
    train(model, sgd(model), [1.0])
    assert collector.get_series_values("input") == [1.0]
    handle.remove()
    collector.attach_to_executor(model).remove()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            3,
            r"attach_to_executor\(int\): a module, a trainer or one of its sides, or what",
        ),
        (None, r"attach_to_executor\(NoneType\)"),
        (lambda x: x, r"attach_to_executor\(function\).*make it a StepFunction"),
        (nn.Linear, r"attach_to_executor\(type\)"),
    ],
)
def test_what_has_no_steps_is_refused(target: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        DataCollector().collect_all().attach_to_executor(target)


def test_a_phase_is_one_of_two() -> None:
    with pytest.raises(ValueError, match="phase='test'; allowed: 'training', 'eval'"):
        DataCollector().collect_all().attach_to_executor(nn.Linear(1, 1), phase="test")  # type: ignore[arg-type]


def test_a_loop_is_what_has_a_trainer() -> None:
    collector = DataCollector().collect_all()
    with pytest.raises(TypeError, match=r"attach_to_loop\(Linear\): a loop with a .trainer"):
        collector.attach_to_loop(nn.Linear(1, 1))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"attach_to_executor\(int\)"):
        collector.attach_to_loop(Loop(trainer=3))


def test_either_side_of_a_loop_is_collected_by_itself_and_counted_as_the_loop_does() -> None:
    training, evaluation = DataCollector().collect_all(), DataCollector().collect_all()
    loop = Loop(Trainer(Telling(training, evaluation)))
    handle = training.attach_to_loop(loop)
    evaluation.attach_to_loop(loop, phase="eval")
    loop.n_updates = 100  # loaded, of a checkpoint
    loop.train(1.0)
    training.collect(0.5, "of a hook")
    loop.trainer.eval(2.0)
    loop.trainer.eval(3.0)
    loop.train(4.0)
    assert training.get_series("input") == ([100, 101], [1.0, 4.0])
    assert training.get_series("of a hook") == ([100], [0.5])
    assert evaluation.get_series("input") == ([101, 101], [4.0, 6.0])
    handle.remove()
    assert loop.trainer.training.acts["begin"] == []
    assert repr(handle) == "<Attachment to Loop, removed>"


def test_the_sides_of_a_trainer_count_its_updates() -> None:
    training, evaluation = DataCollector().collect_all(), DataCollector().collect_all()
    trainer = Trainer(Telling(training, evaluation))
    handles = [
        training.attach_to_executor(trainer),
        evaluation.attach_to_executor(trainer, phase="eval"),
    ]
    for value, skipped in [(1.0, False), (2.0, True), (3.0, True), (4.0, False)]:
        trainer.eval(10 * value)
        trainer.train(value, skipped)  # a step that is none leaves nothing behind
    trainer.eval(50.0)
    assert training.get_series("input") == ([0, 1], [1.0, 4.0])
    assert evaluation.get_series("input") == ([0, 1, 1, 1, 2], [20.0, 40.0, 60.0, 80.0, 100.0])
    for handle in handles:
        handle.remove()
    assert trainer.training.acts == trainer.evaluation.acts == {"begin": [], "end": []}


def test_a_side_alone_knows_no_model_and_its_steps_are_strict() -> None:
    collector = DataCollector().collect_all()
    trainer = Trainer(Telling(collector))
    collector.attach_to_executor(trainer.training)
    trainer.train(1.0)
    collector.collect(0.5, "input")
    trainer.eval(2.0)
    trainer.train(3.0)
    assert collector.get_series("input") == ([0, 1], [1.0, 3.0])
    assert collector.missing == {"outside of a step": 2}


@pytest.mark.parametrize("phase", ["training", "eval"])
def test_a_model_is_freed_and_the_collector_may_go_elsewhere(phase: Any) -> None:
    collector = DataCollector().collect_all()
    model = Telling(collector)
    collector.attach_to_executor(model, phase=phase)
    train(model, sgd(model), [1.0])
    with torch.no_grad():
        model.eval()(given(1.0))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert collector.get_series_values("input") == [1.0]
    assert collector.step is None
    assert "not attached" in repr(collector)
    other = Telling(collector)
    collector.attach_to_executor(other)
    train(other, sgd(other), [2.0])
    assert collector.get_series_values("input") == [1.0, 2.0]


def test_a_trainer_is_freed_with_its_model() -> None:
    collector = DataCollector().collect_all()
    trainer = Trainer(Telling(collector))
    collector.attach_to_executor(trainer)
    trainer.train(1.0)
    gone = weakref.ref(trainer.model)
    del trainer
    gc.collect()
    assert gone() is None
    collector.attach_to_executor(Telling(collector)).remove()


def test_a_collector_that_is_dropped_takes_its_hooks_off() -> None:
    model = nn.Linear(2, 1)
    collector = DataCollector().collect_all()
    collector.attach_to_executor(model)
    gone = weakref.ref(collector)
    del collector
    gc.collect()
    assert gone() is None
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


def pickled(model: Telling) -> Any:
    return pickle.loads(pickle.dumps(model))


def saved(model: Telling) -> Any:
    torch.save(model, file := BytesIO())
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled, saved])
def test_the_collector_of_a_copied_model_has_the_series_and_collects_nothing(
    copied: Callable[[Telling], Telling],
) -> None:
    collector = DataCollector().keep_n_points(3)
    model = Telling(collector)
    collector.attach_to_executor(model)
    train(model, sgd(model), [1.0, 2.0, 3.0])
    other = copied(model)
    train(other, sgd(other), [8.0, 9.0])
    (own,) = other.collectors
    assert own.get_series("input") == ([0, 2], [1.0, 3.0]) == collector.get_series("input")
    assert own.uuid != collector.uuid
    own.attach_to_executor(other)
    train(other, sgd(other), [7.0, 8.0])
    assert own.get_series("input") == ([0, 4], [1.0, 8.0])
    assert collector.get_series("input") == ([0, 2], [1.0, 3.0])


def test_a_step_function_is_called_as_it_is() -> None:
    @StepFunction
    def double(x: int, *, plus: int = 0) -> int:
        """Twice."""
        return 2 * x + plus

    assert double(4, plus=1) == 9
    assert (vars(double)["__name__"], double.__doc__) == ("double", "Twice.")
    with pytest.raises(TypeError, match=r"StepFunction\(3\): a function is expected"):
        StepFunction(3)  # type: ignore[arg-type]


def test_a_call_that_raises_is_no_step() -> None:
    collector = DataCollector().collect_all()

    @StepFunction
    def step(value: float) -> None:
        collector.collect(value, "value")
        if value < 0:
            raise RuntimeError("negative")

    collector.attach_to_executor(step)
    step(1.0)
    with pytest.raises(RuntimeError, match="negative"):
        step(-1.0)
    step(2.0)
    assert collector.get_series("value") == ([0, 1], [1.0, 2.0])
