"""Saved state of a collector: numbers, text and tensors, loaded without pickled code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from notebook_probe.train.collector.policies import Policy, read_policy
from notebook_probe.train.collector.series import Series

__all__ = ["Saved"]


@dataclass(frozen=True, slots=True)
class Saved:
    """Series of a collector at some moment."""

    policy: Policy | None
    next_step: int
    series: Mapping[str, Series]

    def written(self) -> dict[str, Any]:
        """Return a state that ``torch.load(..., weights_only=True)`` can read."""
        return {
            "policy": {} if self.policy is None else self.policy.asked,
            "next_step": self.next_step,
            "series": {name: _written(series) for name, series in self.series.items()},
        }

    @classmethod
    def read(cls, state: Any) -> Saved:
        """Read what `written` made.

        Raises
        ------
        ValueError
            ``state`` is not a result of `written`.
        """
        try:
            series = {str(name): _read(one) for name, one in state["series"].items()}
            policy = read_policy(state["policy"]) if state["policy"] else None
            return cls(policy, int(state["next_step"]), series)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"load_state_dict({type(state).__name__}): no state of a DataCollector "
                f"({type(error).__name__}: {error})"
            ) from error


def _written(series: Series) -> dict[str, Any]:
    return {
        "count": series.count,
        "stride": series.stride,
        "steps": torch.tensor(series.steps, dtype=torch.int64),
        "values": torch.tensor([*map(float, series.values())], dtype=torch.float64),
    }


def _read(state: Mapping[str, Any]) -> Series:
    steps, values = _listed(state["steps"], torch.int64), _listed(state["values"], torch.float64)
    if len(steps) != len(values):
        raise ValueError(f"{len(steps)} steps of {len(values)} values")
    return Series.of(steps, values, int(state["count"]), int(state["stride"]))


def _listed(tensor: Tensor, dtype: torch.dtype) -> list[Any]:
    if tensor.dtype != dtype or tensor.ndim != 1:
        raise ValueError(f"a tensor of {tensor.dtype} and shape {tuple(tensor.shape)}")
    return tensor.tolist()
