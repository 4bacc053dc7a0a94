"""Visualization: what is due is sent, once its step is over, to whatever logs as W&B does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from matplotlib.figure import Figure
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.taiyi import Monitor, Visualization
from tests.models import made
from tests.taiyi.loops import Net, batch, norms, train

Monitored = Callable[..., Monitor]


class Logger:
    """Keeps what it is given, by step, as W&B does: of a step before the last it takes nothing."""

    def __init__(self) -> None:
        self.rows: dict[int, dict[str, Any]] = {}
        self.is_finished = False

    def log(self, values: dict[str, Any], step: int | None = None) -> None:
        last = max(self.rows, default=0)
        step = last if step is None else step
        assert step >= last, f"step {step} after {last}"
        self.rows.setdefault(step, {}).update(values)

    def finish(self) -> None:
        self.is_finished = True


CONFIG: dict[Any, Any] = {
    "body.first": [["WeightNorm", "linear(2,0)"], "InputSndNorm"],
    "body.norm": [["MeanTID", "linear(5,0)"]],
    "": ["grad_norm"],
}


def test_each_due_quantity_is_sent_as_module_and_name(net: Net, monitored: Monitored) -> None:
    monitor, logger = monitored(net, CONFIG), Logger()
    vis = Visualization(monitor, logger)
    train(net, monitor, range(7), vis.show)
    vis.close()
    weights, inputs = norms(net.weights), norms(net.inputs)
    assert [*logger.rows] == [*range(7)]
    for step, row in logger.rows.items():
        assert row.pop("_grad_norm") > 0
        assert ("body.norm_MeanTID" in row) == (step % 5 == 0)
        row.pop("body.norm_MeanTID", None)
        wanted = {"body.first_InputSndNorm": inputs[step]}
        if step % 2 == 0:
            wanted["body.first_WeightNorm"] = weights[step]
        assert row == pytest.approx(wanted, rel=1e-6)
    assert logger.is_finished


def test_a_step_is_sent_once_its_update_has_happened(net: Net, monitored: Monitored) -> None:
    monitor, logger = monitored(net, CONFIG), Logger()
    vis = Visualization(monitor, logger)
    sent: list[list[int]] = []

    def show(step: int) -> None:
        vis.show(step)
        sent.append([*logger.rows])

    train(net, monitor, range(3), show)
    assert sent == [[], [0], [0, 1]]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(batch(3)).square().mean().backward()
    monitor.track(3)
    optimizer.step()
    vis.show(3)
    assert [*logger.rows] == [0, 1, 2, 3], "behind the update it is sent at once"


def test_what_is_given_beside_goes_with_its_step(net: Net, monitored: Monitored) -> None:
    monitor, logger = monitored(net, {"head": ["WeightNorm"]}), Logger()
    vis = Visualization(monitor, logger)
    train(net, monitor, range(10, 12), lambda step: vis.show(step, {"loss": step / 10}))
    vis.log_ext({"accuracy": 0.5})
    assert {step: row["loss"] for step, row in logger.rows.items()} == {10: 1.0, 11: 1.1}
    assert logger.rows[11]["accuracy"] == 0.5

    def both(step: int) -> None:
        vis.show(step)
        vis.log_ext({"now": 1.0})

    train(net, monitor, [12], both)
    vis.close()
    assert set(logger.rows[12]) == {"head_WeightNorm", "now"}


def test_values_of_ones_own_need_no_step(net: Net, monitored: Monitored) -> None:
    logger = Logger()
    Visualization(monitored(net), logger).log_ext({"accuracy": 0.5})
    assert logger.rows == {0: {"accuracy": 0.5}}


def test_a_vector_is_sent_as_a_picture_of_its_history(net: Net, monitored: Monitored) -> None:
    monitor, logger = monitored(net, {"body.first": [["InputMean", "linear(2,0)"]]}), Logger()
    vis = Visualization(monitor, logger)
    train(net, monitor, range(4), vis.show)
    vis.close()
    assert [*logger.rows] == [0, 2], "a step without values is none"
    assert all(isinstance(row["body.first_InputMean"], Figure) for row in logger.rows.values())


def test_what_was_due_and_not_measured_is_left_out(monitored: Monitored) -> None:
    class Headless(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.body(x)

    @nbp.quantity(name="test_count")
    def count(output: Tensor) -> int:
        return output.numel()

    net = made(Headless)
    monitor, logger = monitored(net, {"head": [count], "body.first": [count]}), Logger()
    vis = Visualization(monitor, logger)
    train(net, monitor, range(3), vis.show)
    vis.close()
    assert logger.rows == {step: {"body.first_test_count": 30.0} for step in range(3)}


@pytest.mark.parametrize("wrong", [None, object(), print, {"log": print}])
def test_what_cannot_log_is_refused(wrong: Any, net: Net, monitored: Monitored) -> None:
    with pytest.raises(TypeError, match=r"it has none of log\(values, step=\)"):
        Visualization(monitored(net), wrong)


def test_a_logger_that_knows_no_steps_is_refused(net: Net, monitored: Monitored) -> None:
    class Stepless:
        def log(self, values: dict[str, Any]) -> None:
            """Of no step."""

    with pytest.raises(TypeError, match=r"Visualization\(.*Stepless"):
        Visualization(monitored(net), Stepless())  # type: ignore[arg-type]
