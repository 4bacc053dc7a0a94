"""Which controls of a panel can act now, and why the others cannot."""

from __future__ import annotations

from notebook_probe.run.health.status import Status

__all__ = ["reasons"]

CONTROLS = ("pause", "resume", "step", "stop", "attach", "detach", "compiled")


def reasons(status: Status, live: bool) -> dict[str, str]:
    """Control to the reason why it cannot act now, empty where it can."""
    ended = status.state == "finished"
    if not live or ended:
        elsewhere = "this run is trained by another process"
        return dict.fromkeys(CONTROLS, "this run has ended" if ended else elsewhere)
    paused = status.state == "paused"
    training = paused or status.state == "training" or status.background
    why = {"pause": "already paused"} if paused else {"resume": "not paused"}
    if not training:
        why["stop"] = "no training is running"
    if status.state == "failed":
        why |= dict.fromkeys(CONTROLS[:4], "training ended with an error")
    return {control: why.get(control, "") for control in CONTROLS}
