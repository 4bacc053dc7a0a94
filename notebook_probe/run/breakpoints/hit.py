"""A met condition: its place, its value, and the message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from notebook_probe.json_numbers import json_value
from notebook_probe.run.breakpoints.conditions import PauseCondition

__all__ = ["Hit", "pause_text"]


@dataclass(frozen=True, slots=True)
class Hit:
    """A condition that was met.

    Attributes
    ----------
    step : int
        Step of the row, the step that waits, or the one that raised.
    what : str
        Description in words: ``conv3 · grad_norm 12.3 > 10``.
    """

    id: int
    condition: PauseCondition
    step: int
    what: str
    module: str = ""
    quantity: str = ""
    value: float | None = None
    threshold: float | None = None
    more: dict[str, Any] = field(default_factory=dict)
    """Further facts for programs."""
    traceback: str = ""
    """Traceback of the exception, if any."""

    @property
    def detail(self) -> str:
        """Details for its event: JSON."""
        return json.dumps(
            {
                "condition": self.condition.text,
                "module": self.module,
                "quantity": self.quantity,
                "value": json_value(self.value),
                "threshold": self.threshold,
                "step": self.step,
                **self.more,
            }
        )


def pause_text(hits: Sequence[Hit], step: int) -> str:
    """Return the reason for the pause before ``step``; the first condition met counts.

    Examples
    --------
    >>> from notebook_probe.run.breakpoints.conditions import AtStep
    >>> pause_text([Hit(1, AtStep(7), 7, "")], 7)
    'paused at step 7'
    """
    first = hits[0]
    what = f": {first.what}" if first.what else ""
    # Rows are known a step after theirs, unless a breakpoint made them hurry.
    late = step - 1 - first.step
    told = f" (known {late} step{'s' if late > 1 else ''} later)" if late > 0 else ""
    more = f" … and {len(hits) - 1} more" if len(hits) > 1 else ""
    return f"paused at step {first.step}{what}{told}{more}"
