"""Hidden cost of a hook's call, which the hook cannot see itself, as measured once."""

from __future__ import annotations

import math
from typing import NamedTuple

from notebook_probe.quantities.reduce.features import Moment

__all__ = ["CallSample", "HookOverhead", "is_known", "keep", "seconds_of_a_call"]


class CallSample(NamedTuple):
    """Hidden cost of a call, a number of seconds after the previous hook."""

    after: float
    seconds: float


class HookOverhead(NamedTuple):
    """Costs of calls that follow each other closely, and of calls after more other work.

    The longer others have worked meanwhile, the less of ours is in the nearest caches.
    """

    near: CallSample
    far: CallSample

    def at(self, after: float) -> float:
        """Interpolate in a straight line between near and far; constant outside."""
        near, far = self
        if after >= far.after:
            return far.seconds
        if after <= near.after:
            return near.seconds
        share = (after - near.after) / (far.after - near.after)
        return near.seconds + share * (far.seconds - near.seconds)


_known: dict[Moment, HookOverhead] = {}


def seconds_of_a_call(moment: Moment, after: float = math.inf) -> float:
    """Return the seconds to add to those of a hook of this moment; 0 until they are known.

    Parameters
    ----------
    moment : str
        Kind of reading that the hook makes.
    after : float
        Seconds since the hook before it.
    """
    beside = _known.get(moment)
    if beside is None:
        return 0.0
    near, far = beside
    if after >= far.after:  # as `at`, mostly without a call of it
        return far.seconds
    return near.seconds if after <= near.after else beside.at(after)


def is_known() -> bool:
    """Return whether it has been measured in this process."""
    return bool(_known)


def keep(forward: HookOverhead, backward: HookOverhead) -> None:
    """Use these costs from now on, for hooks of modules and for those of autograd."""
    of_autograd: tuple[Moment, ...] = "backward", "entry", "accumulated"
    _known.update({"forward": forward, **dict.fromkeys(of_autograd, backward)})
