"""Options of an optimizer that were set during training, in addition to its own state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch.optim import Optimizer

from notebook_probe.probes.parameters.stepped import stepped_by
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
        """Return group, option, set value and scheduled value of each."""
        return {
            "factors": [
                (first + group, *factor)
                for first, one in self._by_first_group()
                for group, *factor in live_options(one).state()
            ]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        for first, one in self._by_first_group():
            own = range(first, first + len(one.param_groups))
            rows = [(row[0] - first, *row[1:]) for row in state["factors"] if row[0] in own]
            live_options(one).load_state(rows)

    def _by_first_group(self) -> Iterator[tuple[int, Optimizer]]:
        """Yield the optimizers that step, each with the place of its first group among all."""
        first = 0
        for one in stepped_by(self._optimizer):
            yield first, one
            first += len(one.param_groups)
