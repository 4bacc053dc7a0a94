"""Alignment of two runs on one axis."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from notebook_probe.compare.axes import AXES, RunAxis
from notebook_probe.compare.tables import Doubles
from notebook_probe.record.format.source import check_opened
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["Alignment", "align"]


class Alignment:
    r"""Alignment of another run's steps with this run's, up to the shorter one.

    Let :math:`p(k)` and :math:`q(j)` be the positions of this run and the other on the axis at
    steps :math:`k` and :math:`j`. Step :math:`j` of the other run is drawn at :math:`p^{-1}(q(j)) =
    \min \{k : p(k) \ge q(j)\}`.

    Parameters
    ----------
    this, other : Source
        Runs or opened records.
    by : str
        Same as in `align`.

    Attributes
    ----------
    this, other : RunAxis
        Each run along the axis.
    """

    def __init__(self, this: RunSource, other: RunSource, by: str = "step") -> None:
        self.by = by
        self.this, self.other = RunAxis(this, by), RunAxis(other, by)

    @property
    def is_by_value(self) -> bool:
        """True if steps are aligned by the values of a scalar."""
        return self.by not in AXES

    def steps_here(self, steps: npt.ArrayLike) -> Doubles:
        """Return this run's steps aligned with steps of the other; NaN beyond its end.

        Positions between two known rows are interpolated linearly, so a step may be fractional.
        """
        return self.this.places.steps_at(self.other.places.at(steps))

    def steps_there(self, steps: npt.ArrayLike) -> Doubles:
        """Return the other run's steps aligned with steps of this one; NaN beyond its end."""
        return self.other.places.steps_at(self.this.places.at(steps))

    def x_of_this(self, steps: npt.ArrayLike) -> Doubles:
        """Return the positions of this run's steps on the axis; by value, the steps themselves."""
        return np.asarray(steps, np.float64) if self.is_by_value else self.this.places.at(steps)

    def x_of_other(self, steps: npt.ArrayLike) -> Doubles:
        """Return the positions of the other run's steps on the axis; NaN without a position."""
        return self.steps_here(steps) if self.is_by_value else self.other.places.at(steps)

    def drawn(self, steps: npt.ArrayLike, x: Doubles) -> npt.NDArray[np.intp]:
        """Return which of the other run's steps to draw, given their positions: one at each x.

        Of several steps at one x, take the one with the highest position, and of equal positions
        the first. While a run does not improve, all its steps have the x at which it first reached
        that value; where it improves faster than this run, several steps share an x. So the step
        that `steps_there` returns for an x is the one that is drawn there.

        Examples
        --------
        >>> alignment.drawn([0, 1, 2], alignment.x_of_other([0, 1, 2]))  # doctest: +SKIP
        array([1, 2])
        """
        places = self.other.places.at(steps)
        rows = np.flatnonzero(np.isfinite(x))
        rows = rows[np.diff(places[rows], prepend=np.nan) != 0]
        return rows[np.diff(x[rows], append=np.inf) > 0]


def align(this: RunSource, other: RunSource, by: str = "step") -> Alignment:
    """Align the steps of another run with those of this one.

    Parameters
    ----------
    this, other : Source
        Runs or opened records; both may be growing.
    by : str
        * ``"step"``: the same number of updates, * ``"time"``: seconds since each run's first row,
        including breaks of a resumed run, * ``"samples"``: ``run.log(samples=...)``, or steps times
        ``batch_size`` of the config, * ``"epochs"``: ``run.log(epoch=...)``, or the starts of
        epochs in the record, * the name of a logged scalar such as ``"loss"``: the first step at
        which the smallest value so far is as small as the other run's.

    Raises
    ------
    UnknownNameError
        One of the runs has no record of a series that the axis needs.

    Examples
    --------
    >>> alignment = align(run, nbp.open_run("runs/other.zarr"), by="loss")  # doctest: +SKIP
    >>> alignment.steps_there([1000])  # where the other was as good  # doctest: +SKIP
    array([640.])
    """
    check_opened(this, other)
    return Alignment(this, other, by)
