"""JSON schema of a dataclass, derived from its annotations and its docstring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

__all__ = ["DIALECT", "schema_of"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PLAIN = {str: "string", int: "integer", bool: "boolean", NoneType: "null"}
NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
"""JSON has no NaN and no infinity."""


def schema_of(kind: Any, title: str) -> dict[str, Any]:
    """Return the JSON schema of a dataclass, or of a union of several.

    Examples
    --------
    >>> from notebook_probe.command_line.reading.answers import ConsequenceLine
    >>> found = schema_of(ConsequenceLine, "consequence")
    >>> found["$defs"]["ConsequenceLine"]["properties"]["rule"]
    {'type': 'string'}
    """
    definitions: dict[str, Any] = {}
    body = _schema(kind, definitions)
    return {"$schema": DIALECT, "title": title, **body, "$defs": definitions}


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if is_dataclass(kind):
        return _reference(kind, definitions)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**_schema(inner[0], definitions), "description": inner[1]}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(one, definitions) for one in inner]}
    if origin is Literal:
        return {"enum": [*inner]}
    if origin is tuple:
        return _array(inner, definitions)
    return dict(NUMBER) if kind is float else {"type": PLAIN[kind]}


def _array(inner: Sequence[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if inner[-1] is Ellipsis:
        return {"type": "array", "items": _schema(inner[0], definitions)}
    items = [_schema(one, definitions) for one in inner]
    n = len(items)
    return {"type": "array", "prefixItems": items, "minItems": n, "maxItems": n}


def _reference(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # a dataclass that contains itself ends here
        hints = get_type_hints(kind, include_extras=True)
        names = [one.name for one in fields(kind)]
        definitions[name] = {
            "type": "object",
            "description": str(kind.__doc__).partition("\n")[0],
            "properties": {one: _schema(hints[one], definitions) for one in names},
            "required": names,
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}
