"""Write the messages of the panel, typed dictionaries in Python, as TypeScript declarations.

``python -m tools.message_types`` writes ``tools/javascript/messages.d.ts``, which the type check of
the panel's JavaScript reads. A test compares it with the dictionaries.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from notebook_probe import explorer

__all__ = ["DECLARATIONS", "declarations", "typescript"]

DECLARATIONS = Path(__file__).parent / "javascript" / "messages.d.ts"
_HEADER = "// Written by `python -m tools.message_types`; change the typed dictionaries instead.\n"
_SIMPLE: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    Any: "unknown",
    object: "unknown",
}


def declarations() -> str:
    """Return one interface for each typed dictionary of the panel's messages, by name.

    `AnyMessage` is each of those whose `type` is a single word, so that a word gives its message.
    """
    found = {one.__name__: one for one in sorted(_dictionaries(), key=lambda one: one.__name__)}
    messages = [name for name, one in found.items() if _has_word(one)]
    union = "\n".join(["type AnyMessage =", *(f"  | {name}" for name in messages)])
    return "\n".join([_HEADER, *map(_interface, found.values()), f"{union};\n"])


def typescript(hint: Any) -> str:
    """Return a type of a message in TypeScript.

    Raises
    ------
    TypeError
        JSON has no such type.
    """
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if is_typeddict(hint):
        return str(hint.__name__)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " | ".join(json.dumps(one) for one in arguments)
    if origin in (Union, types.UnionType):
        return " | ".join(typescript(one) for one in arguments)
    if origin in (list, Sequence):
        return f"Array<{typescript(arguments[0])}>"
    if origin is tuple:
        return f"[{', '.join(map(typescript, arguments))}]"
    if origin in (dict, Mapping):
        return f"Record<string, {typescript(arguments[1])}>"
    raise TypeError(f"{hint} has no type in JSON")


def _dictionaries() -> Iterator[type]:
    for found in pkgutil.walk_packages(explorer.__path__, f"{explorer.__name__}."):
        module = importlib.import_module(found.name)
        for one in vars(module).values():
            if is_typeddict(one) and one.__module__ == module.__name__:
                yield one


def _has_word(dictionary: type) -> bool:
    return get_origin(get_type_hints(dictionary).get("type")) is Literal


def _interface(dictionary: type) -> str:
    hints = get_type_hints(dictionary, include_extras=True)
    lines = [_field(name, hint) for name, hint in hints.items()]
    return "\n".join([f"interface {dictionary.__name__} {{", *lines, "}", ""])


def _field(name: str, hint: Any) -> str:
    if get_origin(hint) is NotRequired:
        return f"  {name}?: {typescript(get_args(hint)[0])};"
    if get_origin(hint) is Required:
        return f"  {name}: {typescript(get_args(hint)[0])};"
    return f"  {name}: {typescript(hint)};"


if __name__ == "__main__":
    DECLARATIONS.write_text(declarations(), encoding="utf-8")
