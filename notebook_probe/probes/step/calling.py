"""What a call of a hook takes beside what the hook sees of itself, as it was measured once."""

from __future__ import annotations

import math
from typing import NamedTuple

from notebook_probe.quantities.reduce.features import Moment

__all__ = ["Beside", "Sample", "is_known", "keep", "seconds_of_a_call"]


class Sample(NamedTuple):
    """What a call took beside, so many seconds after the hook before it."""

    after: float
    seconds: float


class Beside(NamedTuple):
    """What calls take that follow each other closely, and what those that come after more work.

    The longer others have worked meanwhile, the less of ours is in the nearest caches.
    """

    near: Sample
    far: Sample

    def at(self, after: float) -> float:
        """In between on a straight line; as measured nearer and farther."""
        near, far = self
        if after >= far.after:
            return far.seconds
        if after <= near.after:
            return near.seconds
        share = (after - near.after) / (far.after - near.after)
        return near.seconds + share * (far.seconds - near.seconds)


_known: dict[Moment, Beside] = {}


def seconds_of_a_call(moment: Moment, after: float = math.inf) -> float:
    """Seconds that come on top of those of a hook of this moment; 0 until they are known.

    Parameters
    ----------
    moment : str
        What the hook reads.
    after : float
        Seconds since the hook before it.
    """
    beside = _known.get(moment)
    return 0.0 if beside is None else beside.at(after)


def is_known() -> bool:
    """Tell whether it has been measured in this process."""
    return bool(_known)


def keep(forward: Beside, backward: Beside) -> None:
    """Count these from now on, for hooks of modules and for those of autograd."""
    of_autograd: tuple[Moment, ...] = "backward", "entry", "accumulated"
    _known.update({"forward": forward, **dict.fromkeys(of_autograd, backward)})
