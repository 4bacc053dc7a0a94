"""Trainings from parameters: dicts are checked, built, trained by a loop, saved and found again.

::

    dicts ─▶ params ─▶ building ─▶ restoring ─▶ units of the loop: train, validate, save ─▶ records
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from notebook_probe.errors import near

if TYPE_CHECKING:
    from notebook_probe.experiment.testing import test, test_from_params
    from notebook_probe.experiment.training import train, train_from_params

__all__ = ["test", "test_from_params", "train", "train_from_params"]

_HOMES = {
    "test": "testing",
    "test_from_params": "testing",
    "train": "training",
    "train_from_params": "training",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; {near(name, __all__)}"
        )
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
