"""Selection of modules: a path, a glob, a class, a class name or a callable.

Everything a user may write becomes a tuple of paths here, in definition order; a selection that
matches nothing raises with the close names. A parameter is a place too: ``"fc1.bias"``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TypeAlias

from torch import nn

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.model.map import ModelMap
from notebook_probe.model.unwrapped import unwrapped

__all__ = ["Where", "attention_places", "default_places", "select", "standard_place"]

Where: TypeAlias = (
    "str | type[nn.Module] | nn.Module | Callable[[str, nn.Module], bool] | Iterable[Where]"
)

ROOT = "(root)"
"""The root module's place as the record writes it; ``""`` is accepted everywhere."""


def select(model_map: ModelMap, where: Where) -> tuple[str, ...]:
    """Paths of the modules (or parameters) of a model that ``where`` means.

    Parameters
    ----------
    where : str, class, module, callable or an iterable of them
        A string is, in this order, a path (``""`` is the root), a class name, a base class name, a
        glob (``"layer*.conv2"``). A class selects its instances, a callable is called as ``(path,
        module)``.

    Raises
    ------
    UnknownNameError
        Nothing matches; the message lists close names.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> select(ModelMap(model), nn.Linear)
    ('0', '2')
    >>> select(ModelMap(model), "2.bias")
    ('2.bias',)
    """
    modules = model_map.modules
    if isinstance(where, str):
        return _by_text(model_map, where)
    if isinstance(where, nn.Module):
        return _of_object(model_map, where)
    if isinstance(where, type):
        found = tuple(path for path, module in modules.items() if isinstance(module, where))
        if not found and (alike := _of_class(model_map, where.__name__)):
            raise UnknownNameError(
                f"no module of {model_map.class_name} is of this class {where.__name__}, which was "
                f"defined again after the model was built; its name selects those that are of the "
                f"other one, {where.__name__!r}: {', '.join(map(repr, alike[:4]))}"
            )
        return _found(found, where.__name__, model_map)
    if callable(where):
        found = tuple(path for path, module in modules.items() if where(path, module))
        return _found(found, getattr(where, "__name__", "callable"), model_map)
    if not isinstance(where, Iterable):
        raise UnknownNameError(
            f"{where!r} selects nothing; allowed: a path, glob, class, class name, "
            f"module, callable (path, module) -> bool, or several of them"
        )
    return tuple(dict.fromkeys(path for part in where for path in select(model_map, part)))


def _by_text(model_map: ModelMap, text: str) -> tuple[str, ...]:
    first = model_map.first_path("" if text == ROOT else text)
    if first is not None:
        return (first,)
    named = _of_class(model_map, text) if text.isidentifier() else ()
    return _found(named or _globbed(model_map, text), repr(text), model_map)


def _of_object(model_map: ModelMap, module: nn.Module) -> tuple[str, ...]:
    found = model_map.paths_of(module)
    if found:
        return found
    kind = type(module).__name__
    alike = ", ".join(map(repr, _of_class(model_map, kind)[:4]))
    other = f"; other ones are {alike}" if alike else ""
    raise UnknownNameError(f"this {kind} is no module of {model_map.class_name}{other}")


def _of_class(model_map: ModelMap, name: str) -> tuple[str, ...]:
    return model_map.paths_by_class.get(name) or model_map.paths_by_base_class.get(name, ())


def _globbed(model_map: ModelMap, glob: str) -> tuple[str, ...]:
    """Modules of such names, or parameters where no module has one; never the root."""
    for names in (model_map.modules, model_map.parameters):
        found = tuple(name for name in names if name and fnmatchcase(name, glob))
        if found:
            return found
    return ()


def _found(found: tuple[str, ...], asked: str, model_map: ModelMap) -> tuple[str, ...]:
    if found:
        return found
    names = [path for path in model_map.modules if path]
    raise UnknownNameError(
        f"no module matches {asked} in {model_map.class_name} ({len(names)} modules); "
        f"{near(asked.strip(chr(39)), [*names, *model_map.paths_by_class])}"
    )


def default_places(model_map: ModelMap) -> tuple[str, ...]:
    """Every layer, a module that owns parameters or an activation, by its path."""
    return tuple(
        path
        for path, module in model_map.modules.items()
        if "parametrizations" not in path.split(".") and (_owns(module) or _activates(module))
    )


def attention_places(model_map: ModelMap) -> tuple[str, ...]:
    """Return the paths of attention modules by class name, the innermost with parameters."""
    found = {
        path
        for path, module in model_map.by_every_path.items()
        if _is_attention(unwrapped(module)) and model_map.has_parameters(path)
    }
    outer = {way for path in found for way in _ways_to(path)}
    return tuple(path for path in model_map.modules if path in found - outer)


def _ways_to(path: str) -> Iterator[str]:
    """Yield the paths of all modules around it."""
    while path:
        path = path.rpartition(".")[0]
        yield path


def _is_attention(module: nn.Module) -> bool:
    kind = type(module).__name__.lower()
    return "attention" in kind or "attn" in kind


def _owns(module: nn.Module) -> bool:
    return any(parameter is not None for parameter in module._parameters.values()) or any(
        name == "parametrizations" for name in module._modules
    )


def _activates(module: nn.Module) -> bool:
    """Return whether it is an activation, by the file of its class: torch.nn.modules.activation."""
    home = type(module).__module__.rsplit(".", 1)[-1]
    return home in ("activation", "activations") and not module._modules


def standard_place(path: str) -> str:
    """Return the path as module axes write it."""
    return path or ROOT
