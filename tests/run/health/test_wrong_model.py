"""What is said of a model that trains in the wrong mode, does not train, or has not begun."""

from __future__ import annotations

from torch import Tensor, nn

from tests.models import made, sgd
from tests.run.conftest import Watch
from tests.run.health.parts import only, train


class PartAndHead(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.part(x))


def test_a_model_that_trains_in_evaluation_mode_is_told_to_be_switched(watch: Watch) -> None:
    model = made(PartAndHead)
    run = watch(model, probes={"part": ["output_norm"]})
    train(model.eval(), sgd(model), range(4))
    run.controls.settle()
    assert only(run).note.endswith("evaluation mode: model.train() before it trains")
    train(model.train(), sgd(model), range(4, 8))
    run.controls.settle()
    assert only(run).note == ""


def test_a_copy_that_trains_in_the_place_of_the_model_is_told(watch: Watch) -> None:
    model, copy = made(PartAndHead), made(PartAndHead)
    run = watch(model, probes=None)
    optimizer = sgd(copy)
    for n in range(12):
        train(copy, optimizer, range(n, n + 1))
        assert run.status().problem.startswith(f"{n + 1} optimizer steps, all of") == (n >= 9)
    train(model, sgd(model), range(1))
    run.controls.settle()
    assert run.status().problem == ""


def test_before_the_first_step_no_rate_and_no_cost_is_told(watch: Watch) -> None:
    model = made(PartAndHead)
    run = watch(model)
    said = str(run.status())
    assert "nan" not in said.lower()
    assert "whose cost is known from the first step on" in said
    train(model, sgd(model), range(2))
    run.controls.settle()
    assert " steps/s, " in str(run.status())
    assert "% of step time, measured lately" in str(run.status())
