"""Class of quantities: named, documented functions of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from notebook_probe.axis import AxisLike, Image
from notebook_probe.quantities.define import card
from notebook_probe.quantities.define.docstring import Explained
from notebook_probe.quantities.define.numbers import read_image, read_scalar, read_vector
from notebook_probe.quantities.reduce.cost import Cost
from notebook_probe.quantities.reduce.features import (
    CALL,
    Feature,
    Moment,
    is_of_step,
    meeting,
    moment_of,
)

__all__ = ["Bounds", "Combine", "Quantity", "Samples"]

Bounds: TypeAlias = tuple[float, float]
"""The least and the greatest that a value can be."""

Combine: TypeAlias = Literal["mean", "sum", "max", "min", "last", "rss"]
"""Rule that combines the values of several calls or tensors; rss = root of summed squares."""

Samples: TypeAlias = Literal["now", "step", "every", "due"]
"""Samples of a value: a call; for a window all calls of the due step, of every step that is
trained, or of those at which it is due."""


@dataclass(frozen=True, eq=False, repr=False)
class Quantity:
    """A named, documented function of features, ready to be attached anywhere.

    Call it like the function it was made from, whose docstring it has. A notebook shows its card
    with all facts; ``print`` shows the same as text.
    """

    name: str
    function: Callable[..., Any]
    features: tuple[Feature, ...]
    explained: Explained
    """Parts of its docstring."""
    units: str = "1"
    combine: Combine = "mean"
    source: str = ""
    question: str = ""
    """Question that it helps to answer, in the words of those who ask."""
    cost: Cost = "scalar"
    aliases: tuple[str, ...] = field(default=())
    axis: AxisLike | None = None
    """Along which its value is a vector; None for a number."""
    samples: Samples = "now"
    """Steps that a value covers: its own or, if ``function`` makes a `Window`, several."""
    usual: float | None = None
    """Usual value where all is well, whatever the model; None for most quantities."""
    bounds: Bounds | None = None
    """Bounds of a value, whatever the model; None where there is nothing to say."""

    def __post_init__(self) -> None:
        # The dataclass is frozen, and `help(quantity)` should show the function's text.
        object.__setattr__(self, "__doc__", self.function.__doc__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<quantity {self.name}({', '.join(f.name for f in self.features)})>"

    def __str__(self) -> str:
        return card.text(self)

    def _repr_html_(self) -> str:
        return card.html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return the text only: a value by itself is text, too; in a list it stays short."""
        return {"text/plain": str(self)}

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return self.explained.summary

    @property
    def family(self) -> str:
        """File in which the quantity is defined."""
        return (self.function.__module__ or "").rpartition(".")[2]

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Tensors that it needs, under the names that users know."""
        return tuple(dict.fromkeys(feature.tensor for feature in self.features))

    @cached_property
    def pools(self) -> bool:
        """True if computed from summaries that are pooled exactly over a step first."""
        # Mixed needs are refused when a quantity is made, so the first feature decides.
        return self.features[0].is_summary

    @cached_property
    def is_of_all(self) -> bool:
        """True if it needs all parameters below a place, not only the weight of the place."""
        return any(feature.each and not feature.part for feature in self.features)

    @cached_property
    def is_of_step(self) -> bool:
        """True if it needs values that are known at the end of the step."""
        return any(map(is_of_step, self.needs))

    @cached_property
    def is_of_batch(self) -> bool:
        """True if it needs values that the loop passes."""
        return any(moment_of(need) == "batch" for need in self.needs)

    @cached_property
    def is_of_calls(self) -> bool:
        """True if it needs a tensor of a module's calls."""
        return any(need in CALL for need in self.needs)

    @cached_property
    def is_of_model(self) -> bool:
        """True if it describes the step or the batch as a whole, not a module or a parameter."""
        return self.is_of_step or self.moment == "batch"

    @property
    def is_window(self) -> bool:
        """True if its function makes a window, which receives one call after another."""
        return self.samples != "now"

    @property
    def spans_steps(self) -> bool:
        """True if it covers several steps, so that a single step has no value of it."""
        return self.samples in ("every", "due")

    @cached_property
    def moment(self) -> Moment:
        """Moment at which its tensors can be read together; the first moment of summaries."""
        return meeting(self.needs) or moment_of(self.needs[0])

    @cached_property
    def moments(self) -> tuple[Moment, ...]:
        """All moments at which something is read for it."""
        return tuple(map(moment_of, self.needs)) if self.pools else (self.moment,)

    def value_of(self, returned: Any) -> Any:
        """Check the result of the function: a number or a 0-d tensor, which stays on its device.

        With an ``axis`` an array or tensor along it.

        Raises
        ------
        QuantityError
            The result is not one real number, or not as many numbers as the axis has entries.
        """
        if self.axis is None:
            if type(returned) is float:  # of most windows, at every step
                return returned
            return read_scalar(f"{self.name} returned", returned)
        where = f"{self.name} returned"
        if isinstance(self.axis, Image):
            return read_image(where, returned, self.axis)
        return read_vector(where, returned, self.axis)
