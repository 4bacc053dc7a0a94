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
"""What one class is called with."""

Made: TypeAlias = "tuple[Optimizer, ...]"
Given: TypeAlias = "OptimizerClass | Optimizer | list[OptimizerClass]"


def make(given: Given, args: Sequence[Any], kwargs: Mapping[str, Any], chosen: Chosen) -> Made:
    """Make the optimizers; each of a list of classes with its own of every list of arguments.

    Raises
    ------
    ValueError
        Lists are not of one length, or the names fit no parameter.
    TypeError
        It is nothing that makes an optimizer, or there are no parameters.
    """
    if isinstance(given, Optimizer):
        if args or kwargs or not chosen.is_all:
            raise TypeError(
                f"{type(given).__name__} is made already; with parameters, their names, or "
                f"arguments its class is expected"
            )
        return (given,)
    if isinstance(given, list):
        rows = _rows(len(given), args, kwargs)
        return _made(given, rows, chosen)
    if isinstance(kwargs.get("lr"), list):
        raise ValueError(f"lr={kwargs['lr']!r}: a list of rates for one optimizer class")
    return _made([given], [([*args], dict(kwargs))], chosen)


def _made(classes: Sequence[OptimizerClass], rows: Sequence[Row], chosen: Chosen) -> Made:
    for one in classes:
        if not callable(one):
            raise TypeError(f"optimizer_class={one!r}: a class of torch.optim is expected")
    if chosen.is_all:
        given = [_with_parameters(one, row) for one, row in zip(classes, rows, strict=True)]
    else:
        given = _chosen(rows, chosen)
    return tuple(
        _checked(one, one(*args, **kwargs))
        for one, (args, kwargs) in zip(classes, given, strict=True)
    )


def _with_parameters(given: OptimizerClass, row: Row) -> Row:
    """What a class of torch's is called with, which takes no module for its parameters."""
    if isinstance(given, type) and issubclass(given, Wrapper):
        return row
    params, args, kwargs = _taken(row)
    return [params.parameters() if isinstance(params, nn.Module) else params, *args], kwargs


def _chosen(rows: Sequence[Row], chosen: Chosen) -> list[Row]:
    taken = [_taken(row) for row in rows]
    groups = [groups_of(params) for params, _, _ in taken]
    chosen.check([group for own in groups for group in own])
    return [
        ([chosen.among(own), *args], kwargs)
        for own, (_, args, kwargs) in zip(groups, taken, strict=True)
    ]


def _taken(row: Row) -> tuple[Any, list[Any], dict[str, Any]]:
    """The parameters, and the other arguments."""
    args, kwargs = [*row[0]], dict(row[1])
    if "params" in kwargs:
        return kwargs.pop("params"), args, kwargs
    if not args:
        raise TypeError("an optimizer without parameters; they are its first argument")
    return args[0], args[1:], kwargs


def _checked(given: OptimizerClass, made: Any) -> Optimizer:
    if not isinstance(made, Optimizer):
        raise TypeError(
            f"optimizer_class={_named(given)} makes {type(made).__name__}; "
            f"a torch.optim.Optimizer is expected"
        )
    return made


def _rows(n: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Row]:
    """What each of n classes is called with."""
    if not n:
        raise ValueError("the list of optimizer classes is empty")
    if not isinstance(kwargs.get("params", args[0] if args else None), list):
        raise ValueError(f"a list of {n} optimizer classes: a list of {n} parameters is expected")
    positional = [_spread(n, f"argument {i}", value) for i, value in enumerate(args)]
    named = {name: _spread(n, name, value) for name, value in kwargs.items()}
    return [
        ([values[i] for values in positional], {key: values[i] for key, values in named.items()})
        for i in range(n)
    ]


def _spread(n: int, what: str, value: Any) -> list[Any]:
    """One for each class: of a list its items, else the same for all."""
    if not isinstance(value, list):
        return [value] * n
    if len(value) != n:
        raise ValueError(f"{what} is a list of {len(value)} for {n} optimizer classes")
    return value


def _named(given: Any) -> str:
    return str(getattr(given, "__name__", None) or repr(given))
