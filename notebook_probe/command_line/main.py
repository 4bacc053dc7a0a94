"""Entry point: parse the words of a command, run it, print errors in one line."""

from __future__ import annotations

import os
import re
import sys
import warnings
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from notebook_probe import __version__
from notebook_probe.command_line import (
    clean_up,
    compare,
    demo,
    export,
    first_difference,
    imports,
    marks,
    run_program,
    runs,
    schemas,
    show,
    skill,
)
from notebook_probe.command_line.acting import verbs
from notebook_probe.command_line.printed import plain
from notebook_probe.command_line.reading import (
    alerts,
    explain,
    follow,
    output,
    plot,
    quantities,
    series,
    tree,
)
from notebook_probe.command_line.serving import server
from notebook_probe.errors import ProbeError, near, without_middle

__all__ = ["main"]

NAME = "notebook_probe"
WRONG = 2
INTERRUPTED = 130
COMMANDS: dict[str, tuple[Callable[[ArgumentParser], None], str]] = {
    "demo": (demo.add, "train a small network, and open its panel in the browser"),
    "run": (run_program.add, "run a program unchanged, and watch the first model that it trains"),
    "runs": (runs.add, "list the runs that meet a condition, as a table"),
    "show": (show.add, "show one run: settings, results, alerts"),
    "compare": (
        compare.add,
        "compare two runs: settings, and the module and step at which they diverge",
    ),
    "first-difference": (
        first_difference.add,
        "find the first operation in which two models differ",
    ),
    "explain": (explain.add, "explain what is wrong with a run, since which step, and where"),
    "alerts": (alerts.add, "list the findings of one run; with --fail-on test it"),
    "series": (series.add, "print values of modules over steps, thinned, with extremes kept"),
    "tree": (tree.add, "list the modules of a run's model: class, parameters, alerts"),
    "quantities": (quantities.add, "list recorded quantities, and those that can be attached"),
    "plot": (plot.add, "draw series, as a picture or as lines of characters"),
    "output": (output.add, "print the last lines that a training has printed"),
    "follow": (follow.add, "print news of a run as JSON lines, until a condition is met"),
    "attach": (verbs.add_attach, "measure a quantity in a training that runs elsewhere"),
    "detach": (verbs.add_detach, "stop measuring a quantity in a training that runs elsewhere"),
    "set": (verbs.add_set, "set the learning rate of a training, or another option"),
    "pause": (verbs.adding_control("pause"), "pause a training before its next step"),
    "resume": (verbs.adding_control("resume"), "continue a paused training"),
    "step": (verbs.adding_control("step"), "train one step of a training, then pause"),
    "stop": (
        verbs.adding_control("stop"),
        "end the loop of a training; everything recorded is kept",
    ),
    "checkpoint": (verbs.add_checkpoint, "save the state of a training"),
    "rewind": (
        verbs.add_rewind,
        "go back to an earlier step of a training, and continue from there",
    ),
    "look": (verbs.add_look, "store the tensors of a module in the next step of a training"),
    "export": (export.add, "export runs to a .csv, .json, .zip, .nc or .html file"),
    "import": (imports.add, "convert old runs of W&B, TensorBoard and others to records"),
    "tag": (marks.add_tag, "tag a run"),
    "note": (marks.add_note, "write a note to a run"),
    "archive": (marks.add_archive, "archive runs: tables leave them out"),
    "restore": (marks.add_restore, "restore archived runs"),
    "clean-up": (clean_up.add, "list runs to delete; with --delete delete them"),
    "schema": (schemas.add, "print JSON schemas of the outputs"),
    "skill": (skill.add, "print a page about these commands, for coding agents"),
    "mcp": (
        lambda parser: server.add(parser, COMMANDS, main),
        "serve these commands as tools of the Model Context Protocol",
    ),
}


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code of the process.

    Parameters
    ----------
    words : sequence of str, optional
        Words without the name of the program; by default those of this process.
    """
    try:
        asked = _parser().parse_args(words)
        with _one_line_warnings():
            code = asked.do(asked)
            sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough
        _close_stdout()
    except KeyboardInterrupt:
        return INTERRUPTED
    except _told_errors() as error:
        print(f"{NAME}: error: {plain(_words_of(error))}", file=sys.stderr)
        return WRONG
    else:
        return code or 0
    return 0


class _OneLineParser(ArgumentParser):
    """Parser whose errors take one line."""

    def error(self, message: str) -> NoReturn:
        told = plain(_with_near(message))
        print(f"{NAME}: error: {told}; --help says more", file=sys.stderr)
        sys.exit(WRONG)


_CHOICE = re.compile(r"(.*invalid choice: '(.*)') \(choose from (.*)\)", re.DOTALL)
"""Message of argparse about a wrong word."""


def _with_near(message: str) -> str:
    """Return a message about a wrong word, with close ones instead of all that are allowed."""
    found = _CHOICE.fullmatch(message)
    if found is None:
        return message
    what, given, allowed = found.groups()
    names = [one.strip("'") for one in allowed.split(", ")]
    return f"{what}; {near(given, names)}"


def _words_of(error: BaseException) -> str:
    """Return what an error says; of the system's own without the number, and never too much."""
    told = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        told = f"{error.strerror}: {error.filename!r}"
    return without_middle(told)


def _parser() -> ArgumentParser:
    parser = _OneLineParser(
        prog="nbp", description="Runs that are recorded, finished or being trained now."
    )
    parser.add_argument("--version", action="version", version=f"{NAME} {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (add, about) in COMMANDS.items():
        add(commands.add_parser(name, help=about, description=about))
    return parser


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _warn
        yield


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"{NAME}: {plain(str(message))}", file=sys.stderr)


def _told_errors() -> tuple[type[BaseException], ...]:
    """Errors that say all themselves; others are ours, and their traceback is wanted."""
    database = sys.modules.get("sqlalchemy.exc")
    of_database = (database.SQLAlchemyError,) if database is not None else ()
    return (ProbeError, OSError, ValueError, *of_database)


def _close_stdout() -> None:
    """Send what the interpreter still writes at exit to the null device."""
    # After a closed pipe, as of `head`, the flush at exit would raise once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
