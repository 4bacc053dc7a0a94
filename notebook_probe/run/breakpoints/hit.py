"""That a condition was met: where, by what value, and what is said of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from notebook_probe.run.breakpoints.conditions import Condition

__all__ = ["Hit", "held_text"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A condition that was met.

    Attributes
    ----------
    step : int
        That of the row, of the step that waits, or of the one that raised.
    what : str
        In words: ``conv3 · grad_norm 12.3 > 10``.
    """

    id: int
    condition: Condition
    step: int
    what: str
    module: str = ""
    quantity: str = ""
    value: float | None = None
    threshold: float | None = None
    more: dict[str, Any] = field(default_factory=dict)
    """What else a program may want to know."""
    traceback: str = ""
    """Of the exception that met it."""

    @property
    def detail(self) -> str:
        """For its event: JSON."""
        return json.dumps(
            {
                "condition": self.condition.text,
                "module": self.module,
                "quantity": self.quantity,
                "value": _plain(self.value),
                "threshold": self.threshold,
                "step": self.step,
                **self.more,
            }
        )


def held_text(hits: Sequence[Hit], step: int) -> str:
    """Why training is held before ``step`` is trained; the first condition met is the reason.

    Examples
    --------
    >>> from notebook_probe.run.breakpoints.conditions import AtStep
    >>> held_text([Hit(1, AtStep(7), 7, "")], 7)
    'paused at step 7'
    """
    first = hits[0]
    what = f": {first.what}" if first.what else ""
    late = step - 1 - first.step
    told = f" (known {late} step{'s' if late > 1 else ''} later)" if late > 0 else ""
    more = f" … and {len(hits) - 1} more" if len(hits) > 1 else ""
    return f"paused at step {first.step}{what}{told}{more}"


def _plain(value: float | None) -> float | str | None:
    """JSON has no NaN."""
    return value if value is None or math.isfinite(value) else str(value)
