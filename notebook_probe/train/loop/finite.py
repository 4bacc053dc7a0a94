"""Check for finite losses: exact, and without waiting for a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from notebook_probe.errors import InfLossError, NanLossError
from notebook_probe.train.metrics.averages import Value

__all__ = ["CheckFinite", "FiniteCheck"]

CheckFinite: TypeAlias = Literal["now"] | bool


class FiniteCheck:
    """Raise if a loss is NaN or infinite.

    Parameters
    ----------
    when : True, "now" or False
        True looks at a loss that lies on an accelerator when its copy has come, at most one step
        later; ``"now"`` waits for it.
    """

    def __init__(self, when: CheckFinite) -> None:
        if when not in (True, False, "now"):
            raise ValueError(f"check_finite={when!r}; allowed: True, 'now', False")
        self._when = when
        self._coming: tuple[int, Callable[[], float]] | None = None

    def __call__(self, step: int, loss: Value) -> None:
        """Check the loss of a step, or of the one before."""
        if self._when is False:
            return
        if not isinstance(loss, Tensor):
            if not math.isfinite(loss):
                _refuse(step, loss)
        elif self._when == "now" or loss.device.type != "cuda":
            # Copies that do not wait need pinned memory and events, which are CUDA's.
            self._look(step, loss.item())
        else:
            # That of the step before has come meanwhile: this hardly waits.
            self.finish()
            self._coming = step, _copied(loss)

    def finish(self) -> None:
        """Look at what has not been looked at."""
        if self._coming is not None:
            (step, number), self._coming = self._coming, None
            self._look(step, number())

    def _look(self, step: int, loss: float) -> None:
        if not math.isfinite(loss):
            _refuse(step, loss)


def _refuse(step: int, loss: float) -> None:
    error = NanLossError if math.isnan(loss) else InfLossError
    raise error(
        f"the loss of step {step} is {loss}; allowed: finite numbers, or check_finite=False"
    )


def _copied(loss: Tensor) -> Callable[[], float]:
    """Return a function that returns the number once its copy has arrived."""
    # Only a copy into pinned memory leaves the host free.
    host = torch.empty((), dtype=loss.dtype, pin_memory=True)
    host.copy_(loss, non_blocking=True)
    event = torch.cuda.Event()
    event.record()

    def number() -> float:
        event.synchronize()
        return host.item()

    return number
