"""What a kernel says of the history of a run: checkpoints, the way back, and what was left."""

from __future__ import annotations

import time
from typing import Any

RESTORES = "Weights, optimizer, scheduler, random numbers and the order of the data"
MUST = "The loop must be paused or in the background to go back"


def checkpoints(*steps: int, gone: int = -1) -> list[dict[str, Any]]:
    now_ms = int(time.time() * 1000) - 14 * 60_000
    return [
        {
            "step": step,
            "nbytes": 314_000,
            "path": f"kept/step_{step}.pt",
            "loss": 0.571,
            "time_ms": now_ms,
            "gone": step == gone,
        }
        for step in steps
    ]


def history(*steps: int, gone: int = -1, **changes: Any) -> dict[str, Any]:
    """Checkpoints at these steps, of a loop that has no way back by a click."""
    told = {"branch": 1, "fork": None, "left": None, "way": None}
    return {
        "v": 1,
        "type": "history",
        "checkpoints": checkpoints(*steps, gone=gone),
        **told,
        **changes,
    }


def way(why_not: str = "", waits: str = "", until: int | None = None) -> dict[str, Any]:
    return {"restores": RESTORES, "why_not": why_not, "waits": waits, "until": until}


def branched(*steps: int, fork: int = 300, to: int = 842, n_alerts: int = 4) -> dict[str, Any]:
    """A branch of that line, which had checkpoints every hundred steps."""
    left = {
        "to": to,
        "checkpoints": checkpoints(*range(fork + 100, to, 100)),
        "n_alerts": n_alerts,
    }
    return history(*steps, branch=2, fork=fork, left=left, way=way())
