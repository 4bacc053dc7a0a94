"""Which modules are meant: a path, a glob, a class, a class name or a callable.

Everything a user may write becomes a tuple of paths here, in definition order; a selection that
matches nothing raises with the close names. A parameter is a place too: ``"fc1.bias"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TypeAlias

from torch import nn

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.model.paths import modules_of, parameters_at
from notebook_probe.model.unwrapped import unwrapped

__all__ = ["Where", "attention_places", "default_places", "select", "standard_place"]

Where: TypeAlias = (
    "str | type[nn.Module] | nn.Module | Callable[[str, nn.Module], bool] | Iterable[Where]"
)

ROOT = "(root)"
"""The root module's place as the record writes it; ``""`` is accepted everywhere."""


def select(model: nn.Module, where: Where) -> tuple[str, ...]:
    """Paths of the modules (or parameters) of ``model`` that ``where`` means.

    Parameters
    ----------
    where : str, class, module, callable or an iterable of them
        In this order a string is a path (``""`` is the root), a class name, a base class name, a
        glob (``"layer*.conv2"``). A class selects its instances, a callable is asked
        ``(path, module)``.

    Raises
    ------
    UnknownNameError
        Nothing matches; the message lists close names.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> select(model, nn.Linear)
    ('0', '2')
    >>> select(model, "2.bias")
    ('2.bias',)
    """
    modules = {path: unwrapped(module) for path, module in modules_of(model).items()}
    if isinstance(where, str):
        return _by_text(model, modules, where)
    if isinstance(where, nn.Module):
        found = tuple(path for path, module in modules.items() if module is unwrapped(where))
        return _found(found, repr(type(where).__name__), model, modules)
    if isinstance(where, type):
        found = tuple(path for path, module in modules.items() if isinstance(module, where))
        return _found(found, where.__name__, model, modules)
    if callable(where):
        found = tuple(path for path, module in modules.items() if where(path, module))
        return _found(found, getattr(where, "__name__", "callable"), model, modules)
    if not isinstance(where, Iterable):
        raise UnknownNameError(
            f"{where!r} selects nothing; allowed: a path, glob, class, class name, "
            f"module, callable (path, module) -> bool, or several of them"
        )
    return tuple(dict.fromkeys(path for part in where for path in select(model, part)))


def _by_text(model: nn.Module, modules: dict[str, nn.Module], text: str) -> tuple[str, ...]:
    path = "" if text == ROOT else text
    first = _first_name(model, path)
    if first is not None:
        return (first,)
    parameters = parameters_at(model)
    classes = {path: type(module).__mro__ for path, module in modules.items()}
    exact = [path for path, mro in classes.items() if mro[0].__name__ == text]
    based = [path for path, mro in classes.items() if any(base.__name__ == text for base in mro)]
    globbed = [name for name in (*modules, *parameters) if name and fnmatchcase(name, text)]
    only_modules = [name for name in globbed if name in modules]
    found = exact or based or only_modules or globbed
    return _found(tuple(found), repr(text), model, modules)


def _first_name(model: nn.Module, path: str) -> str | None:
    """The first name of what lies at ``path``: a shared module or parameter has several."""
    module = modules_of(model, every_path=True).get(path)
    if module is not None:
        return next(name for name, one in modules_of(model).items() if one is module)
    parameter = parameters_at(model, every_path=True).get(path)
    if parameter is not None:
        return next(name for name, one in parameters_at(model).items() if one is parameter)
    return None


def _found(
    found: tuple[str, ...], asked: str, model: nn.Module, modules: dict[str, nn.Module]
) -> tuple[str, ...]:
    if found:
        return found
    names = [path for path in modules if path]
    classes = dict.fromkeys(type(module).__name__ for module in modules.values())
    raise UnknownNameError(
        f"no module matches {asked} in {type(model).__name__} ({len(names)} modules); "
        f"{near(asked.strip(chr(39)), [*names, *classes])}"
    )


def default_places(model: nn.Module) -> tuple[str, ...]:
    """Every layer, a module that owns parameters or an activation, by its path."""
    return tuple(
        path
        for path, module in modules_of(model).items()
        if "parametrizations" not in path.split(".")
        and (_owns(unwrapped(module)) or _activates(unwrapped(module)))
    )


def attention_places(model: nn.Module) -> tuple[str, ...]:
    """The attention modules, as their class is called, the innermost with parameters, by path."""
    named = {
        path: unwrapped(module)
        for path, module in modules_of(model).items()
        if _is_attention(unwrapped(module)) and next(module.parameters(), None) is not None
    }
    return tuple(
        path
        for path, module in named.items()
        if not any(other is not module and other in module.modules() for other in named.values())
    )


def _is_attention(module: nn.Module) -> bool:
    kind = type(module).__name__.lower()
    return "attention" in kind or "attn" in kind


def _owns(module: nn.Module) -> bool:
    return any(parameter is not None for parameter in module._parameters.values()) or any(
        name == "parametrizations" for name in module._modules
    )


def _activates(module: nn.Module) -> bool:
    """An activation lives in a file called so: torch.nn.modules.activation and its kind."""
    home = type(module).__module__.rsplit(".", 1)[-1]
    return home in ("activation", "activations") and not module._modules


def standard_place(path: str) -> str:
    """The path as module axes write it."""
    return path or ROOT
