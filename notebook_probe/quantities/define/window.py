"""Quantities of several steps: a class that is updated at every step and computed when due.

>>> @window_quantity(units="1")
... class LargestNorm:
...     \"\"\"Largest norm of the gradient since it was last recorded.\"\"\"
...     def reset(self):
...         self.largest = 0.0
...     def update(self, grad_sumsq):
...         self.largest = max(self.largest, grad_sumsq.sumsq**0.5)
...     def compute(self):
...         return self.largest
>>> LargestNorm.name, LargestNorm.needs
('largest_norm', ('grad',))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from notebook_probe.axis import AxisLike
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define.decorator import define, quantities
from notebook_probe.quantities.define.quantity import Bounds, Combine, Quantity, Samples
from notebook_probe.quantities.reduce.cost import Cost
from notebook_probe.quantities.reduce.features import EACH

__all__ = ["Window", "window_quantity"]

METHODS = ("reset", "update", "compute")


class Window(Protocol):
    """Protocol of values gathered since the last due step; the same as in torchmetrics."""

    update: Callable[..., None]
    """Method that adds one step; its parameter names are the features it needs.

    Summaries come pooled, once per step. Tensors come as they are read, once per call.
    """

    def reset(self) -> None:
        """Clear the state; called before the first step and after each due step."""

    def compute(self) -> Any:
        """Return the value of the due step, or None; do not change the state."""


def window_quantity(
    kind: type | None = None,
    /,
    *,
    units: str = "1",
    name: str | None = None,
    combine: Combine = "mean",
    source: str = "",
    question: str = "",
    cost: Cost | None = None,
    aliases: Sequence[str] = (),
    axis: AxisLike | None = None,
    samples: Samples = "every",
    usual: float | None = None,
    bounds: Bounds | None = None,
) -> Any:
    """Make a quantity of a class with ``reset``, ``update`` and ``compute``, and register it.

    Every step is sampled while the quantity is attached, due or not. The value recorded in a due
    step covers all steps after the last due one, this one included.

    Each parameter has a window of its tensors. With the prefix ``each_``, as in ``each_grad``, a
    window gets the tensors of all parameters below the place, and the class needs ``merge(other)``,
    which returns the combined window: one value is computed for all together.

    The gathered state is part of a checkpoint (see `Run.state_dict`) if its attributes are tensors,
    arrays, numbers, text, and lists, tuples, dicts and deques of these. In a run that was resumed
    without this state, ``begin_late()``, if the class has it, is called once after the first
    ``reset``: ``compute`` then returns None until earlier steps no longer matter. A class without
    ``begin_late()`` that keeps state over a ``reset`` has no value in such a run.

    Parameters
    ----------
    units : str
        Units of the value, ``"1"`` for a pure number.
    name : str, optional
        Name of the quantity in the record; by default the class's name in snake_case.
    combine : {"mean", "sum", "max", "min", "last", "rss"}
        Combination of the values of several parameters of one module into one.
    source : str
        Paper or definition.
    question : str
        Question that it helps to answer, such as `notebook_probe.quantities.define.questions.DEAD`.
    cost : str, optional
        Cost class, if it is more expensive than its features: one of
        `notebook_probe.quantities.reduce.cost.COSTS`.
    aliases : sequence of str
        Other names under which it can be attached.
    axis : Axis, PER_CHANNEL or IMAGE, optional
        Axis, if the value is a vector.
    samples : {"every", "due", "step"}
        Steps that are sampled: every step, only due steps, or only the due step with all its calls,
        for which ``reset`` clears all state.

    Returns
    -------
    Quantity
        Quantity; calling it returns an instance of the class.

    Raises
    ------
    QuantityError
        A method is missing, a parameter of ``update`` is not a feature, or the features are
        available at different moments.

    Examples
    --------
    >>> @window_quantity(units="1")
    ... class StepsSeen:
    ...     \"\"\"Steps since the last due one.\"\"\"
    ...     def reset(self):
    ...         self.n = 0
    ...     def update(self, output_sumsq):
    ...         self.n += 1
    ...     def compute(self):
    ...         return self.n
    >>> StepsSeen.summary
    'Steps since the last due one.'
    """

    def make(kind: type) -> Quantity:
        own = name or _snake(kind.__name__)
        missing = [method for method in METHODS if not callable(getattr(kind, method, None))]
        if missing:
            raise QuantityError(f"{own}: the class has no {missing[0]}(); {', '.join(METHODS)}")
        try:
            # An instance, as `update` may be set in __init__, and to find now what would fail at
            # each probe.
            update = kind().update
        except Exception as error:
            raise QuantityError(
                f"{own}: {kind.__name__}() raised {type(error).__name__}: {error}; "
                f"a window is made without arguments"
            ) from error
        made = define(
            kind,
            update,
            name=own,
            units=units,
            combine=combine,
            source=source,
            question=question,
            cost=cost,
            aliases=(aliases,) if isinstance(aliases, str) else tuple(aliases),
            axis=axis,
            samples=samples,
            usual=usual,
            bounds=bounds,
        )
        # Each parameter below a place has a window, and only the class knows how to join them.
        if made.is_of_all and not callable(getattr(kind, "merge", None)):
            raise QuantityError(f"{own}: the class has no merge(other), for {EACH}... needs one")
        quantities.add(made.name, made, made.aliases)
        return made

    return make if kind is None else make(kind)


def _snake(name: str) -> str:
    """Convert a name to snake case.

    >>> _snake("GradCosine"), _snake("dead_fraction")
    ('grad_cosine', 'dead_fraction')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
