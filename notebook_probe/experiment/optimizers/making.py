"""Optimizers from classes and their arguments, one or several of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from torch import nn
from torch.optim import Optimizer

from notebook_probe.experiment.optimizers.names import Chosen, groups_of
from notebook_probe.experiment.optimizers.wrapper import Wrapper

__all__ = ["OptimizerClass", "make"]

OptimizerClass: TypeAlias = "Callable[..., Optimizer]"

Row: TypeAlias = "tuple[list[Any], dict[str, Any]]"
"""Arguments of one class."""


def make(
    given: OptimizerClass | Optimizer | list[OptimizerClass],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    names: Mapping[str, Any],
) -> tuple[Optimizer, ...]:
    """Make the optimizers; each of a list of classes with its own of every list.

    Raises
    ------
    ValueError
        Lists are not of one length, the names fit no parameter, or two would train the same.
    TypeError
        It is nothing that makes an optimizer, or there are no parameters.
    """
    if isinstance(given, Optimizer):
        if args or kwargs or not Chosen(**names).is_all:
            raise TypeError(
                f"{type(given).__name__} is made already; with parameters, their names, or "
                f"arguments its class is expected"
            )
        return (given,)
    if isinstance(given, list):
        return _several(given, args, kwargs, names)
    if isinstance(kwargs.get("lr"), list):
        raise ValueError(f"lr={kwargs['lr']!r}: a list of rates for one optimizer class")
    return (_one(given, ([*args], dict(kwargs)), Chosen(**names)),)


def _several(
    classes: Sequence[OptimizerClass],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    names: Mapping[str, Any],
) -> tuple[Optimizer, ...]:
    n = len(classes)
    if not n:
        raise ValueError("the list of optimizer classes is empty")
    # One shared list of parameters would give every optimizer all of them.
    if not isinstance(kwargs.get("params", args[0] if args else None), list):
        raise ValueError(f"a list of {n} optimizer classes: a list of {n} parameters is expected")
    chosen = [Chosen(**own) for _, own in _rows(n, (), names)]
    made = tuple(map(_one, classes, _rows(n, args, kwargs), chosen))
    # By identity: tensors compare element by element.
    owned = [id(value) for one in made for group in one.param_groups for value in group["params"]]
    if len({*owned}) < len(owned):
        raise ValueError(
            f"{n} optimizers, two of which train the same parameter; give each its own, or "
            f"trainable_names as a list with the names of each"
        )
    return made


def _one(given: OptimizerClass, row: Row, chosen: Chosen) -> Optimizer:
    name = getattr(given, "__name__", None) or repr(given)
    if not callable(given):
        raise TypeError(f"optimizer_class={name}: a class of torch.optim is expected")
    args, kwargs = _with_parameters(given, row) if chosen.is_all else _with_chosen(row, chosen)
    made: Any = given(*args, **kwargs)
    if not isinstance(made, Optimizer):
        raise TypeError(
            f"optimizer_class={name} makes {type(made).__name__}; a torch.optim.Optimizer is "
            f"expected"
        )
    return made


def _with_parameters(given: OptimizerClass, row: Row) -> Row:
    """Return the arguments of a torch class, which takes no module for its parameters."""
    # A wrapper takes the module itself, as it may have to select by name.
    if isinstance(given, type) and issubclass(given, Wrapper):
        return row
    params, args, kwargs = _taken(row)
    return [params.parameters() if isinstance(params, nn.Module) else params, *args], kwargs


def _with_chosen(row: Row, chosen: Chosen) -> Row:
    params, args, kwargs = _taken(row)
    return [chosen.among(groups_of(params)), *args], kwargs


def _taken(row: Row) -> tuple[Any, list[Any], dict[str, Any]]:
    """Return the parameters, and the other arguments."""
    args, kwargs = [*row[0]], dict(row[1])
    if "params" in kwargs:
        return kwargs.pop("params"), args, kwargs
    if not args:
        raise TypeError("an optimizer without parameters; they are its first argument")
    return args[0], args[1:], kwargs


def _rows(n: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Row]:
    """Return the arguments of each of n classes."""
    positional = [_spread(n, f"argument {i}", value) for i, value in enumerate(args)]
    named = {name: _spread(n, name, value) for name, value in kwargs.items()}
    return [
        ([values[i] for values in positional], {key: values[i] for key, values in named.items()})
        for i in range(n)
    ]


def _spread(n: int, what: str, value: Any) -> list[Any]:
    """Return one value per class: the items of a list, else the same for all."""
    if not isinstance(value, list):
        return [value] * n
    if len(value) != n:
        raise ValueError(f"{what} is a list of {len(value)} for {n} optimizer classes")
    return value
