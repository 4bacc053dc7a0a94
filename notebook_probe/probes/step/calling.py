"""What a call of a hook takes beside what the hook sees of itself, as it was measured once."""

from __future__ import annotations

from notebook_probe.quantities.reduce.features import Moment

__all__ = ["is_known", "keep_seconds", "seconds_of_a_call"]

_seconds: dict[Moment, float] = {}


def seconds_of_a_call(moment: Moment) -> float:
    """Seconds that come on top of those of a hook of this moment; 0 until they are known."""
    return _seconds.get(moment, 0.0)


def is_known() -> bool:
    """Tell whether it has been measured in this process."""
    return bool(_seconds)


def keep_seconds(forward: float, backward: float) -> None:
    """Count these from now on, for hooks of modules and for those of autograd."""
    of_autograd: tuple[Moment, ...] = "backward", "entry", "accumulated"
    _seconds.update({"forward": forward, **dict.fromkeys(of_autograd, backward)})
