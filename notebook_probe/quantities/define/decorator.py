"""Decorator that makes a quantity of a pure function, whose parameters name its features.

>>> @quantity(units="1")
... def top_share(output):
...     \"\"\"Share of the largest activation in the layer's total.\"\"\"
...     return output.abs().amax() / output.abs().sum()
>>> top_share.needs
('output',)
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, get_args, overload

from notebook_probe.axis import AxisLike
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.define.docstring import explained
from notebook_probe.quantities.define.quantity import Bounds, Combine, Quantity, Samples
from notebook_probe.quantities.reduce import features
from notebook_probe.quantities.reduce.cost import COSTS, Cost, cost_of_reading, dearest
from notebook_probe.quantities.reduce.features import TENSORS, Feature, meeting
from notebook_probe.quantities.reduce.measure import STAT
from notebook_probe.quantities.reduce.reductions import parts
from notebook_probe.registry import Registry

__all__ = ["as_quantity", "define", "own_name", "quantities", "quantity"]


def _same_definition(old: Quantity, new: Quantity) -> bool:
    """Return whether a cell was run twice, as opposed to a second quantity of the same name.

    In a notebook whatever is defined last counts, as for its functions, also under a new name.
    """
    # A callable object has no qualified name, but its name in the registry.
    old_home, new_home = (
        (q.function.__module__, getattr(q.function, "__qualname__", q.name)) for q in (old, new)
    )
    return old_home == new_home or old_home[0] == new_home[0] == "__main__"


quantities: Registry[Quantity] = Registry("quantity", "notebook_probe.quantities", _same_definition)
"""Every quantity by name and alias; filled by importing the families and by `quantity`."""


@overload
def quantity(function: Callable[..., Any], /) -> Quantity: ...
@overload
def quantity(
    *,
    units: str = ...,
    name: str | None = ...,
    combine: Combine = ...,
    source: str = ...,
    question: str = ...,
    cost: Cost | None = ...,
    aliases: Sequence[str] = ...,
    axis: AxisLike | None = ...,
    usual: float | None = ...,
    bounds: Bounds | None = ...,
) -> Callable[[Callable[..., Any]], Quantity]: ...
def quantity(
    function: Callable[..., Any] | None = None,
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
    usual: float | None = None,
    bounds: Bounds | None = None,
) -> Quantity | Callable[[Callable[..., Any]], Quantity]:
    """Make a quantity of a function of tensors, and register it under its name.

    Its docstring is its documentation: a first line with the formula in double backticks,
    paragraphs on how to read it, and a section ``Warnings`` with the pitfalls.

    Parameters
    ----------
    units : str
        Units of the value, ``"1"`` for a pure number.
    name : str, optional
        Name of the quantity in the record; by default the function's name.
    combine : {"mean", "sum", "max", "min", "last", "rss"}
        Combination of the values of several calls or tensors in one step into one.
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
        Axis, if the value is a vector; ``PER_CHANNEL`` if the length differs per module, ``IMAGE``
        for an image: (height, width), or (height, width, 3 or 4) with colors.
    usual : float, optional
        Usual value in a healthy model; the panel marks it on the color scale.
    bounds : (float, float), optional
        Bounds of its value in any model, such as ``(0, 1)`` for a share: it is drawn on a linear
        axis, and a share has a special color scale.

    Returns
    -------
    Quantity
        Quantity that is callable like the function. The function returns a number or a 0-d tensor;
        with an ``axis``, an array or tensor of its length.

    Raises
    ------
    QuantityError
        A parameter is not a feature, the features are available at different moments, or
        ``combine`` is unknown.

    Examples
    --------
    >>> @quantity(units="1", combine="max")
    ... def largest(output):
    ...     \"\"\"Largest activation, ``max |y|``.\"\"\"
    ...     return output.abs().amax()
    >>> largest.explained.formula, largest.cost
    ('max |y|', 'activations')
    """

    def make(function: Callable[..., Any]) -> Quantity:
        made = define(
            function,
            function,
            name=name or str(getattr(function, "__name__", "")),
            units=units,
            combine=combine,
            source=source,
            question=question,
            cost=cost,
            aliases=(aliases,) if isinstance(aliases, str) else tuple(aliases),
            axis=axis,
            usual=usual,
            bounds=bounds,
        )
        quantities.add(made.name, made, made.aliases)
        return made

    return make if function is None else make(function)


def as_quantity(given: Quantity | Callable[..., Any] | str) -> Quantity:
    """Return the quantity for a quantity, its name or alias, or a plain function of features."""
    if isinstance(given, Quantity):
        return given
    if isinstance(given, str):
        return quantities[given]
    if callable(given):
        return define(given, given, name=str(getattr(given, "__name__", "")))
    raise QuantityError(f"{given!r} is no quantity; give a name, a quantity or a function")


def own_name(name: str) -> str:
    """Return the name of the quantity with this name or alias; otherwise ``name`` unchanged.

    >>> own_name("loss")
    'loss'
    """
    return quantities[name].name if name in quantities else name


def define(
    function: Callable[..., Any],
    reads: Callable[..., Any],
    *,
    name: str,
    units: str = "1",
    combine: Combine = "mean",
    source: str = "",
    question: str = "",
    cost: Cost | None = None,
    aliases: tuple[str, ...] = (),
    axis: AxisLike | None = None,
    samples: Samples = "now",
    usual: float | None = None,
    bounds: Bounds | None = None,
) -> Quantity:
    """Make an unregistered quantity whose features are the parameter names of ``reads``.

    Raises
    ------
    QuantityError
        Same as in `quantity`.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise QuantityError(
            f"quantity name {name!r} of {function!r} must be an identifier, like 'top_share'; "
            f"nbp.quantity(name=...) gives it one"
        )
    _check_settings(name, combine, samples, cost, axis, (units, source, question, *aliases))
    needed = tuple(_feature(name, parameter) for parameter in _parameters(name, reads))
    _check_moments(name, needed)
    _check_each(name, needed, samples)
    return Quantity(
        name=name,
        function=function,
        features=needed,
        explained=explained(inspect.getdoc(function) or ""),
        units=units,
        combine=combine,
        source=source,
        question=question,
        # Cost of its most expensive feature, unless the author gives another.
        cost=cost or dearest(map(_cost, needed)),
        aliases=aliases,
        axis=axis,
        samples=samples,
        usual=usual,
        bounds=_read_bounds(name, bounds),
    )


def _read_bounds(name: str, bounds: object) -> Bounds | None:
    if bounds is None:
        return None
    ends = bounds if isinstance(bounds, tuple) and len(bounds) == 2 else ()
    match [float(end) for end in ends if isinstance(end, int | float) and math.isfinite(end)]:
        case [low, high] if low < high:
            return low, high
    raise QuantityError(f"{name}: bounds={bounds!r}; allowed: (low, high) with low < high, or None")


def _check_each(name: str, needed: tuple[Feature, ...], samples: Samples) -> None:
    for feature in needed:
        if feature.each and not feature.part and samples == "now":
            raise QuantityError(
                f"{name}({feature.name}): tensors of all parameters are for a window; "
                f"use a summary such as {feature.name}_{STAT.parts[0]}"
            )


def _check_settings(
    name: str, combine: str, samples: str, cost: str | None, axis: object, texts: Sequence[object]
) -> None:
    for setting, given, known in (
        ("combine", combine, get_args(Combine)),
        ("samples", samples, get_args(Samples)),
        ("cost", cost, (None, *COSTS)),
    ):
        if given not in known:
            allowed = ", ".join(one for one in known if one is not None)
            raise QuantityError(f"{name}: {setting}={given!r}; allowed: {allowed}")
    if not isinstance(axis, AxisLike | None):
        raise QuantityError(f"{name}: axis={axis!r}; allowed: an Axis, PER_CHANNEL, IMAGE, None")
    for text in texts:
        if not isinstance(text, str):
            raise QuantityError(f"{name}: {text!r}; units, source, question and aliases are text")


def _cost(feature: Feature) -> Cost:
    reading = cost_of_reading(feature.tensor)
    return dearest([reading, parts[feature.part].cost]) if feature.part else reading


def _parameters(name: str, function: Callable[..., Any]) -> list[str]:
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise QuantityError(f"{name} has no signature to read features from; wrap it") from None
    # Parameters with defaults are settings, which nothing is looked up for.
    required = [one for one in signature.parameters.values() if one.default is one.empty]
    parameters = [one.name for one in required]
    for one in required:
        if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            raise QuantityError(f"{name}({one}): features are given by position, as {name}(output)")
    if not parameters:
        raise QuantityError(
            f"{name}() needs no feature; name its parameters after {', '.join(TENSORS)}"
        )
    return parameters


def _feature(name: str, parameter: str) -> Feature:
    try:
        return features.read(parameter, tuple(parts))
    except QuantityError as error:
        raise QuantityError(f"{name}({parameter}): {error}") from None


def _check_moments(name: str, needed: tuple[Feature, ...]) -> None:
    if all(feature.is_summary for feature in needed):
        return
    if any(feature.is_summary for feature in needed):
        raise QuantityError(f"{name} mixes tensors and summaries; use one kind")
    if meeting(feature.tensor for feature in needed) is None:
        given = ", ".join(feature.name for feature in needed)
        raise QuantityError(
            f"{name}({given}) needs tensors that exist at different moments of a step; "
            f"use summaries such as {needed[0].tensor}_{STAT.parts[0]}"
        )
