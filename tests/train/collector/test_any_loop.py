"""Any order of forwards, updates and evaluations, against the plainest count of steps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.optim import SGD

from notebook_probe import DataCollector
from tests.train.collector import loops
from tests.train.collector.loops import Telling

Event = tuple[str, int]
Point = tuple[int, float]

events = st.lists(
    st.sampled_from([("train", 0), ("name", 0), ("update", 0), ("update", 1), ("eval", 0)]),
    max_size=25,
)


def expected(happened: list[Event]) -> tuple[list[Point], list[Point]]:
    """What a collector of the training and one of the evaluation have: steps, and which event.

    A forward that trains begins the next step once an optimizer has stepped, and so does an
    optimizer that steps again; a step's values are kept when an optimizer has stepped in it.
    """
    step, stepped = 0, set[int]()
    waiting: list[int] = []
    trained: list[Point] = []
    evaluated: list[Point] = []
    for number, (kind, which) in enumerate(happened):
        if (kind == "train" and stepped) or (kind == "update" and which in stepped):
            step, stepped = step + 1, set()
        if kind in ("train", "name"):
            waiting.append(number)
        if kind == "update":
            stepped.add(which)
        if kind == "eval":
            evaluated.append((step + bool(stepped), number))
        if stepped:
            trained += [(step, one) for one in waiting]
            waiting = []
    return trained, evaluated


@pytest.mark.slow
@given(events)
@example([("train", 0), ("update", 0), ("name", 0), ("update", 1), ("update", 0), ("eval", 0)])
def test_every_value_is_of_the_step_that_the_words_say(happened: list[Event]) -> None:
    training, evaluation = DataCollector().collect_all(), DataCollector().collect_all()
    model = Telling(training, evaluation)
    training.attach_to_executor(model)
    evaluation.attach_to_executor(model, phase="eval")
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizers = [SGD([weight], lr=0.1) for weight in model.parameters()]
    for number, (kind, which) in enumerate(happened):
        match kind:
            case "train":
                model(loops.given(number))
            case "name":
                training.collect(number, "input")
            case "update":
                optimizers[which].step()
            case "eval":
                with torch.no_grad():
                    model.eval()(loops.given(number / 2))
                model.train()
    trained, evaluated = expected(happened)
    assert [*zip(*training.get_series("input"), strict=True)] == trained
    assert [*zip(*evaluation.get_series("input"), strict=True)] == evaluated
