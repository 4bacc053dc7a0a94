"""What was set of an optimizer while it trained, beside its own state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.optim import Optimizer

from notebook_probe.probes.step.live_options import live_options

__all__ = ["SetByHand"]


class SetByHand:
    """The factors by which options differ from their schedules.

    Parameters
    ----------
    optimizer : Optimizer
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """Of each the group, the option, and which value was set where which was scheduled."""
        return {"factors": live_options(self._optimizer).state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`."""
        live_options(self._optimizer).load_state(state["factors"])
