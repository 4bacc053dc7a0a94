"""An Accelerator as in a fresh process; its state is otherwise shared by all that are made."""

from __future__ import annotations

from typing import Any

from accelerate import Accelerator
from accelerate.state import AcceleratorState

__all__ = ["new_accelerator"]


def new_accelerator(**options: Any) -> Accelerator:
    AcceleratorState._reset_state(reset_partial_state=True)
    return Accelerator(cpu=True, **options)
