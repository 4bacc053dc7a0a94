"""The tools that are compared, by the name they are selected with; one small file each."""

from __future__ import annotations

from benchmarks.peers import floor, nothing, ours, taiyi, tensorboard, wandb
from benchmarks.peers.tool import Absent, Tool, Watched

__all__ = ["TOOLS", "Absent", "Tool", "Watched"]

TOOLS: dict[str, Tool] = {
    "nothing": nothing.watch,
    "floor": floor.watch,
    "ours": ours.watch,
    "tensorboard": tensorboard.watch,
    "wandb": wandb.watch,
    "taiyi": taiyi.watch,
}
