"""Rules follow the loss that is there at more of the last steps."""

from __future__ import annotations

import numpy as np
import pytest

from notebook_probe.alerts.dense_loss import RECENT, meant
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from tests.explorer.fakes import FakeStream


def of_steps(name: str, steps: range, stream: str) -> FakeStream:
    found = FakeStream(stream, ["(root)"], [name], logged=True)
    found.append(steps, **{name: np.ones((len(steps), 1), np.float32)})
    return found


def followed(logged: dict[str, range], n: int = 400, backward: range | None = None) -> str:
    """Which series the rules' loss is where these are logged in ``n`` steps."""
    views = [of_steps(name, steps, f"every_{i}") for i, (name, steps) in enumerate(logged.items())]
    every = of_steps(BACKWARD_LOSS, range(n) if backward is None else backward, "of_backward")
    (found,) = meant(("loss",), [*views, every])
    return found


@pytest.mark.parametrize("name", ["loss", "train_loss"])
@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        (range(400), "logged"),
        (range(2, 400), "logged"),
        (range(99, 400, 100), BACKWARD_LOSS),
        (range(0, 400, 2), BACKWARD_LOSS),
        (range(100), BACKWARD_LOSS),
        (range(400 - RECENT, 400), "logged"),
    ],
    ids=["every step", "all but two", "an epoch", "every second", "at first", "lately"],
)
def test_the_denser_of_the_last_steps_is_followed(name: str, steps: range, wanted: str) -> None:
    assert followed({name: steps}) == (name if wanted == "logged" else wanted)


def test_a_row_more_or_less_at_the_beginning_is_no_matter() -> None:
    assert followed({"loss": range(1)}, n=3) == "loss"
    assert followed({"loss": range(1)}, n=4) == BACKWARD_LOSS


def test_the_losses_of_two_adversaries_are_not_left_for_their_sum() -> None:
    two = {"loss_d": range(400), "loss_g": range(400)}
    assert followed({"loss": range(0, 400, 100), **two}) == "loss"
    assert followed(two) == "loss", "which nobody logs"


def test_other_quantities_are_what_they_are() -> None:
    assert meant(("grad_norm",), []) == ("grad_norm",)
    assert meant(("grad_norm", "loss"), []) == ("grad_norm", "loss")
