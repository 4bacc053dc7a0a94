"""Decorator that makes a reduction of a function, which several quantities share.

>>> @reduction
... def sizes(tensor):
...     \"\"\"Magnitude of each row.\"\"\"
...     return tensor.flatten(1).norm(dim=1)
>>> from notebook_probe.quantities.define.decorator import quantity
>>> @quantity(units="1")
... def uneven(output_sizes):
...     \"\"\"Largest row over the mean of all, ``max ‖y_i‖ / mean ‖y_i‖``.\"\"\"
...     return output_sizes.max() / output_sizes.mean()
>>> uneven.needs
('output',)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args, overload

from notebook_probe.errors import DuplicateNameError, QuantityError, near
from notebook_probe.quantities.define.measured import MeasuredFunction, Worked, finished
from notebook_probe.quantities.define.quantity import Combine
from notebook_probe.quantities.reduce.cost import COSTS, Cost, dearest
from notebook_probe.quantities.reduce.features import clash
from notebook_probe.quantities.reduce.reductions import Derived, Reduction, derive, parts

__all__ = ["reduction"]

F = TypeVar("F", bound=Callable[..., Any])

OF_A_TENSOR = ("tensor", "module")


@overload
def reduction(function: F, /) -> F: ...
@overload
def reduction(
    *, name: str | None = ..., combine: Combine = ..., cost: Cost | None = ...
) -> Callable[[F], F]: ...
def reduction(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    combine: Combine = "mean",
    cost: Cost | None = None,
) -> F | Callable[[F], F]:
    """Make a reduction of a function: computed once per step and tensor, shared by quantities.

    A quantity requests it by the names of the tensor and the reduction, as in ``output_moments``: a
    reduction ``sizes`` provides ``output_sizes``, ``input_sizes``, ``weight_sizes``,
    ``grad_output_sizes`` and so on.

    The parameters of the function say what it gets. A function of a ``tensor`` is called with the
    first floating-point tensor of each call, detached, and with the called ``module`` if it has a
    parameter of this name, which is None for tensors of parameters. It returns a real tensor or a
    number, which is copied to float64 and pooled over the calls of the step; or an object whose
    ``merge(other)`` pools it.

    A function of other reductions, such as ``def gap(cov_eigs)``, is called once per step, with
    their results for the same tensor, on the host.

    Parameters
    ----------
    name : str
        Name of the reduction; by default the function's name.
    combine : {"mean", "sum", "max", "min", "last", "rss"}
        Combination of the tensors of several calls in a step into one, element by element.
    cost : str, optional
        Cost class, one of `notebook_probe.quantities.reduce.cost.COSTS`: ``"sort"`` by default. A
        reduction of other reductions has the class of the most expensive one.

    Returns
    -------
    callable
        The function, unchanged.

    Raises
    ------
    QuantityError
        A parameter is not one of these, ``combine`` or ``cost`` is unknown, or reductions need each
        other in a circle.
    DuplicateNameError
        The name is taken, or would be read as another feature.

    Notes
    -----
    An exception or an invalid result while a model trains is an error of the quantities that use
    it, shown in ``run.status()``. A reduction that writes into its tensor is disabled with them
    before it affects training.

    Examples
    --------
    >>> import torch
    >>> @reduction(cost="factorisation")
    ... def stretches(tensor):
    ...     return torch.linalg.svdvals(tensor)
    >>> @reduction
    ... def stretch(stretches):
    ...     return stretches[0] / stretches[-1]
    >>> float(stretch(stretches(torch.diag(torch.tensor([4.0, 2.0])))))
    2.0
    """

    def register(function: F) -> F:
        own = name or str(getattr(function, "__name__", ""))
        wanted = _checked(own, function, combine, cost)
        needs = tuple(one for one in wanted if one not in OF_A_TENSOR)
        if needs:
            costs = [parts[need].cost for need in needs if need in parts]  # itself is refused below
            derive(Derived(own, Worked(own, function), needs, cost or dearest(costs)))
        else:
            measure = MeasuredFunction(own, function, wanted, combine)
            # "sort" unless said otherwise: a user's function may do anything.
            made = Reduction((own,), measure, True, cost=cost or "sort", finish=finished)
            parts.add(own, made)
        return function

    return register if function is None else register(function)


def _checked(
    name: str, function: Callable[..., Any], combine: object, cost: object
) -> tuple[str, ...]:
    """Return the features that the function asks for, and raise if it cannot be a reduction."""
    if not callable(function) or not str(name).isidentifier() or name in OF_A_TENSOR:
        raise QuantityError(
            f"reduction name {name!r} of {function!r} must be an identifier other than "
            f"{' and '.join(OF_A_TENSOR)}, like 'sizes'; nbp.reduction(name=...) gives it one"
        )
    settings = (("combine", combine, get_args(Combine)), ("cost", cost, (None, *COSTS)))
    for setting, given, known in settings:
        if given not in known:
            allowed = ", ".join(one for one in known if one is not None)
            raise QuantityError(f"reduction {name}: {setting}={given!r}; allowed: {allowed}")
    taken = clash(name, tuple(parts))
    if taken:
        raise DuplicateNameError(
            f"reduction {name!r} would make {taken!r}, which is something else; "
            f"give yours another name"
        )
    return _parameters(name, function)


def _parameters(name: str, function: Callable[..., Any]) -> tuple[str, ...]:
    try:
        given = inspect.signature(function).parameters.values()
    except ValueError:
        raise QuantityError(f"reduction {name} has no signature to read; wrap it") from None
    required = [one for one in given if one.default is one.empty]
    for one in required:
        if one.kind not in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            raise QuantityError(f"reduction {name}({one}): all is given by position")
    names = tuple(one.name for one in required)
    for asked in names:
        if asked not in OF_A_TENSOR and asked != name and asked not in parts:
            raise QuantityError(
                f"reduction {name}({asked}): no reduction {asked!r}; "
                f"{near(asked, (*OF_A_TENSOR, *parts))}; allowed: tensor, its module, or "
                f"other reductions"
            )
    # Either the tensor or results of others: the second kind runs after pooling, when tensors are
    # gone.
    if ("tensor" in names) == any(one not in OF_A_TENSOR for one in names) or (
        "module" in names and "tensor" not in names
    ):
        raise QuantityError(
            f"reduction {name}({', '.join(names)}): allowed: a tensor, its module, or "
            f"other reductions alone"
        )
    return names
