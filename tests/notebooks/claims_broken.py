"""What notebooks of broken trainings must have found, read from the records that they leave.

Each leaves two runs that differ in one line, called broken and healthy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp

__all__ = ["CLAIMS_BROKEN"]


def recorded(folder: Path) -> dict[str, Any]:
    """The runs of a notebook by their names."""
    return {run.name: run for run in map(nbp.open_run, folder.glob("runs/*.zarr"))}


def rules(run: Any) -> list[str]:
    """The rules that have spoken, each once, by the step of the first alert."""
    return list(dict.fromkeys(alert.rule for alert in run.alerts))


def dying_relu(folder: Path) -> None:
    """Bytes as inputs: layers die at once, and the loss stays that of a guess (1903.06733)."""
    runs = recorded(folder)
    dead = {name: run.data.dead_fraction.isel(step=-10) for name, run in runs.items()}
    assert dead["broken"].sel(module="1") == 1
    assert dead["healthy"].max() < 0.2
    losses = {name: run.series("", "backward_loss")[-20:].mean() for name, run in runs.items()}
    assert losses["broken"] == pytest.approx(math.log(10), abs=0.02)
    assert losses["healthy"] < 0.2
    assert {"lr_high", "dead_units", "silent_inputs", "vanishing_gradient"} <= {
        *rules(runs["broken"])
    }
    assert rules(runs["healthy"]) == []


CLAIMS_BROKEN: dict[str, Callable[[Path], None]] = {
    "dying_relu": dying_relu,
}
"""By the name of the notebook."""
