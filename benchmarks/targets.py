"""What watching may cost: step CPU time over the plain step's."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["is_judged_by_pairs", "self_timed_ratio", "target"]

LIMITS = {
    "P1": {"MLP": 1.03, "ResNet-18": 1.010, "small GPT": 1.008},
    "P2": {"MLP": 1.07, "ResNet-18": 1.035, "small GPT": 1.035},
    "P3": {"MLP": 1.30, "ResNet-18": 1.09, "small GPT": 1.06},
}

OF_TAIYI = {"MLP": 1 / 40, "ResNet-18": 0.3, "small GPT": 0.3}
"""P4: the part of Taiyi's overhead, both by pairs."""


def target(chosen: str, workload: str, ratios: Mapping[str, float]) -> float:
    """The largest ratio allowed; NaN where it is a part of a peer's that was not measured."""
    if chosen in LIMITS:
        return LIMITS[chosen][workload]
    return 1 + OF_TAIYI[workload] * (ratios.get("taiyi", math.nan) - 1)


def is_judged_by_pairs(chosen: str, workload: str) -> bool:
    """Whether pairs say enough: on short steps, of which there are many, and for a large cost."""
    return workload == "MLP" or chosen == "P4"


def self_timed_ratio(percent: float) -> float:
    """A share of the watched step, as a ratio to the plain one."""
    return 1 / (1 - percent / 100)
