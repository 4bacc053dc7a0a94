"""Commands that are tools: which, with what they take and give, and one call of one of them."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notebook_probe.command_line.printed import json_text
from notebook_probe.command_line.schemas import schemas
from notebook_probe.command_line.serving.arguments import CommandArguments
from notebook_probe.command_line.serving.calling import WRONG, Called, call
from notebook_probe.errors import QueryError

__all__ = ["Answered", "CommandTool", "tools_of"]

Commands = Mapping[str, tuple[Callable[[ArgumentParser], None], str]]
"""Name of a command -> what adds its arguments, and a line about it."""

READING = (
    "runs",
    "show",
    "explain",
    "alerts",
    "series",
    "tree",
    "quantities",
    "plot",
    "follow",
    "output",
)
READING_TWO = ("compare",)
ACTING = ("attach", "detach", "set", "pause", "resume", "step", "checkpoint", "look")
ENDING = ("stop", "rewind")
"""Acting tools that end a training, or leave what was trained."""
LISTS = {"runs": "runs", "follow": "lines"}
"""Name of the list that is the output of a command, as tools give objects."""
OF_A_ROOT = ("$schema", "title", "$defs")
"""Entries of a JSON schema that are only understood at its root."""
PREFIX = "notebook_probe: error: "


@dataclass(frozen=True, slots=True)
class Answered:
    """Answer of a tool.

    Attributes
    ----------
    text : str
        JSON of the command, or its error.
    found : dict, optional
        The same as an object; None for an error.
    warnings : str
        Lines on stderr.
    code : int
        Exit code of the command.
    """

    text: str
    found: dict[str, Any] | None
    warnings: str
    code: int


class CommandTool:
    """A command as a tool.

    Parameters
    ----------
    name, about : str
    add : callable
        Adds its arguments.
    run : callable
        Runs words in this process.
    catalogue : sequence of str
        Options of the catalogue of runs.
    """

    def __init__(
        self,
        name: str,
        about: str,
        add: Callable[[ArgumentParser], None],
        run: Callable[[Sequence[str]], int],
        catalogue: Sequence[str],
    ) -> None:
        self.name, self.about = name, about
        self._arguments, self._run, self._catalogue = CommandArguments(add), run, catalogue

    @property
    def is_reading(self) -> bool:
        return self.name in READING + READING_TWO

    @property
    def is_ending(self) -> bool:
        return self.name in ENDING

    @property
    def takes(self) -> dict[str, Any]:
        """JSON schema of its arguments."""
        return self._arguments.schema

    @property
    def gives(self) -> dict[str, Any]:
        """JSON schema of its answer: that of ``nbp schema``, an object."""
        own = schemas()[self.name]
        if self.name not in LISTS:
            return {"type": "object", **own}  # clients want the type at the root
        name, root = LISTS[self.name], {key: own.pop(key) for key in OF_A_ROOT if key in own}
        body = own if self.name == "runs" else {"type": "array", "items": own}
        return {**root, "type": "object", "properties": {name: body}, "required": [name]}

    def answer(self, given: Mapping[str, Any]) -> Answered:
        """Run the command with these arguments."""
        form = () if self.name == "follow" else ("--json",)
        try:
            words = [self.name, *form, *self._catalogue, *self._arguments.words(given)]
        except QueryError as error:
            return Answered(str(error), None, "", WRONG)
        called = call(self._run, words)
        if called.code == WRONG and not called.out:
            return Answered(_error_in(called), None, "", WRONG)
        found = self._object(called.out)
        return Answered(json_text(found), found, called.err.strip(), called.code)

    def _object(self, out: str) -> dict[str, Any]:
        lines = [json.loads(one) for one in out.splitlines()]
        if self.name == "follow":
            return {LISTS[self.name]: lines}
        (found,) = lines
        return {LISTS[self.name]: found} if self.name in LISTS else found


def tools_of(
    commands: Commands,
    run: Callable[[Sequence[str]], int],
    *,
    acts: bool = True,
    catalogue: Sequence[str] = (),
) -> dict[str, CommandTool]:
    """Return the tools by name; without ``acts`` those that read."""
    names = READING + READING_TWO + (ACTING + ENDING if acts else ())
    return {
        name: CommandTool(name, about, add, run, catalogue)
        for name, (add, about) in commands.items()
        if name in names
    }


def _error_in(called: Called) -> str:
    """Return the error of a command without the name of the program."""
    lines = called.err.strip().splitlines() or [f"exit code {called.code}"]
    return "\n".join(one.removeprefix(PREFIX) for one in lines)
