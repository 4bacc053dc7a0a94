"""Arguments of a command as a JSON schema, and back from an object to the words of the command."""

from __future__ import annotations

from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from notebook_probe.command_line.asked import count
from notebook_probe.command_line.reading.printing import seconds
from notebook_probe.errors import QueryError, near

__all__ = ["CommandArguments"]

OF_THE_SERVER = frozenset({"help", "json", "csv", "catalogue", "root"})
"""Options that a tool has not: those of the form of the output, and those of the server."""
TYPES: Mapping[Any, str] = {int: "integer", count: "integer", float: "number", seconds: "number"}
"""Types of the arguments that are no text."""


class CommandArguments(ArgumentParser):
    """Parser that keeps the arguments a command adds, by the names they have in a tool.

    Parameters
    ----------
    add : callable
        Adds the arguments of the command.

    Examples
    --------
    >>> from notebook_probe.command_line.reading import alerts
    >>> arguments = CommandArguments(alerts.add)
    >>> sorted(arguments.schema["properties"])
    ['fail_on', 'limit', 'run', 'since']
    >>> arguments.words({"run": "first.zarr", "since": 7})
    ['--since=7', '--', 'first.zarr']
    """

    def __init__(self, add: Callable[[ArgumentParser], None]) -> None:
        self._kept: dict[str, Action] = {}
        super().__init__(add_help=False)
        add(self)

    def add_argument(self, *names: Any, **options: Any) -> Any:
        """Add an argument, and keep it."""
        action = super().add_argument(*names, **options)
        self._keep(action)
        return action

    def add_mutually_exclusive_group(self, **options: Any) -> Any:
        """Return the parser itself: none of the tools' arguments excludes another."""
        return self

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the object that the tool takes."""
        return {
            "type": "object",
            "properties": {name: _schema_of(one) for name, one in self._kept.items()},
            "required": [name for name, one in self._kept.items() if _is_required(one)],
            "additionalProperties": False,
        }

    def words(self, given: Mapping[str, Any]) -> list[str]:
        """Return the words that say the same to the command, without its name.

        Raises
        ------
        QueryError
            For an argument that the command has not, or that is missing.
        """
        for name in given:
            if name not in self._kept:
                raise QueryError(f"no argument {name!r}; {near(name, self._kept)}")
        for name, one in self._kept.items():
            if _is_required(one) and given.get(name) is None:
                raise QueryError(f"the argument {name!r} is missing")
        known = {name: one for name, one in self._kept.items() if given.get(name) is not None}
        options = [
            word
            for name, one in known.items()
            if one.option_strings
            for word in _option(one, given[name])
        ]
        values = [
            str(value)
            for name, one in known.items()
            if not one.option_strings
            for value in _list(given[name])
        ]
        # After --, so that no value is read as an option.
        return [*options, "--", *values]

    def _keep(self, action: Action) -> None:
        longest = max(action.option_strings, key=len, default=action.dest)
        name = longest.lstrip("-").replace("-", "_")
        if name not in OF_THE_SERVER:
            self._kept[name] = action


def _schema_of(action: Action) -> dict[str, Any]:
    kind = _kind(action)
    if _is_many(action):
        body: dict[str, Any] = {"type": "array", "items": {"type": kind}}
        if isinstance(action.nargs, int):
            body |= {"minItems": action.nargs, "maxItems": action.nargs}
    else:
        body = {"type": kind}
    if action.choices is not None:
        body["enum"] = [*action.choices]
    text = (action.help or "") % {"default": action.default}
    return {**body, **({"description": text} if text else {})}


def _kind(action: Action) -> str:
    return "boolean" if action.nargs == 0 else TYPES.get(action.type, "string")


def _is_many(action: Action) -> bool:
    # An option that is repeated is an action of a class that argparse does not show.
    return (
        action.nargs == "*"
        or (isinstance(action.nargs, int) and action.nargs > 1)
        or (bool(action.option_strings) and type(action).__name__ == "_AppendAction")
    )


def _is_required(action: Action) -> bool:
    return action.required and action.nargs not in ("?", "*")


def _option(action: Action, value: Any) -> Iterator[str]:
    name = max(action.option_strings, key=len)
    if action.nargs == 0:
        yield from [name] * bool(value)
        return
    for one in _list(value):
        yield f"{name}={one}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
