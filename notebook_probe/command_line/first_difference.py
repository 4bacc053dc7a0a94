"""``first-difference``: the first operation in which one step of two models differs."""

from __future__ import annotations

import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from notebook_probe.command_line.printed import plain, print_json
from notebook_probe.errors import ProbeError, UnknownNameError, near

if TYPE_CHECKING:
    from notebook_probe.examine import operations

__all__ = ["FirstDifferenceAnswer", "add"]

WHAT = "MODULE:FUNCTION or FILE.py:FUNCTION"
MOST_PARTS = 4
"""Model, inputs, targets and loss."""


@dataclass(frozen=True, slots=True)
class OperationLine:
    """Place of an operation."""

    operation: Annotated[str, "name in torch, such as aten.mul.Tensor"]
    arguments: Annotated[str, "arguments; ~ is a tensor"]
    module: Annotated[str, "path of the module; '' for the model itself and the loss"]
    file: Annotated[str, "file of the user's line; '' if there is none"]
    line: int
    code: str


@dataclass(frozen=True, slots=True)
class FirstDifferenceAnswer:
    """Answer of `first-difference`."""

    title: str
    module: Annotated[str, "path of the module with the difference; '' for the model itself"]
    kind: Annotated[
        Literal["none", "operation", "arguments", "inputs", "result", "graph", "weights"],
        "what differs",
    ]
    direction: Literal["forward", "backward"]
    this: Annotated[OperationLine | None, "operation in the first model"]
    other: Annotated[OperationLine | None, "operation in the second model"]
    weights: Annotated[tuple[str, ...], "that differed, and were made equal before"]
    n_operations: Annotated[tuple[int, int], "operations of the step in both"]


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("this", metavar="THIS", help=f"{WHAT} that returns model, inputs, ...")
    parser.add_argument("other", metavar="OTHER", help=f"{WHAT} that returns the other model")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-6,
        help="relative difference of equal values, %(default)s",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object; see nbp schema")
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Make both models, run one step of each on copies, and print where they differ."""
    sys.path.insert(0, str(Path.cwd()))
    with redirect_stdout(sys.stderr):  # what their code prints is no part of the answer
        found = _compared(_parts(asked.this), _parts(asked.other), asked)
    if asked.json:
        print_json(found.to_dict())
        return
    for line in found.lines():
        indent = len(line) - len(line.lstrip())
        print(" " * indent + plain(line))


def _compared(
    this: tuple[Any, ...], other: tuple[Any, ...], asked: Namespace
) -> operations.FirstDifference:
    from notebook_probe.examine.operations.comparing import first_difference, made
    from notebook_probe.examine.subject import Arguments

    if len(this) == 1:
        raise ProbeError(f"{asked.this} returned a model alone; return model, inputs")
    inputs, targets, loss = (*this[1:], None, None)[: MOST_PARTS - 1]
    return first_difference(
        made(this[0]),
        made(other[0]),
        Arguments.of(inputs),
        targets=targets,
        loss=loss,
        other_loss=other[MOST_PARTS - 1] if len(other) == MOST_PARTS else None,
        tolerance=asked.tolerance,
    )


def _parts(word: str) -> tuple[Any, ...]:
    """Return model, inputs, targets and loss, if a function returns them.

    Random generators are the same before each of both.
    """
    from torch import nn

    from notebook_probe.probes.replay.random_state import RandomState

    state = RandomState.now()
    try:
        found = _function(word)()
    except ProbeError:
        raise
    except Exception as error:  # theirs: where it was raised matters more than our frames
        raise ProbeError(f"{word}: {_error_text(error)}") from error
    finally:
        state.set()
    parts = found if isinstance(found, tuple) else (found,)
    if not (0 < len(parts) <= MOST_PARTS and isinstance(parts[0], nn.Module)):
        raise ProbeError(f"{word} returned {type(found).__name__}; model, inputs, targets, loss")
    return parts


def _function(word: str) -> Callable[[], Any]:
    place, colon, name = word.rpartition(":")
    if not colon:
        raise ProbeError(f"{word!r} is no {WHAT}")
    module = _file(Path(place)) if place.endswith(".py") else import_module(place)
    found = vars(module).get(name)
    if not callable(found):
        known = [one for one, value in vars(module).items() if callable(value)]
        raise UnknownNameError(f"no function {name!r} in {place}; {near(name, known)}")
    function: Callable[[], Any] = found
    return function


def _file(path: Path) -> ModuleType:
    """Import a file; two of one name are two modules."""
    spec = spec_from_file_location(f"notebook_probe_{abs(hash(path.resolve()))}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ProbeError(f"no file {path}")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for their module there
    spec.loader.exec_module(module)
    return module


def _error_text(error: Exception) -> str:
    """Return an error with the line that raised it."""
    last = [*traceback.extract_tb(error.__traceback__)][-1]
    return f"{type(error).__name__}: {error} (line {last.lineno} of {last.filename})"
