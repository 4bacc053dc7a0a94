"""``run``: a program, unchanged, with watching switched on."""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser, ArgumentTypeError, Namespace

from notebook_probe.errors import ProbeError
from notebook_probe.launch.command import replace_process
from notebook_probe.launch.options import VARIABLES, budget_of

__all__ = ["add"]

ON_COMPILED = ("skip", "inside", "eager")


def add(parser: ArgumentParser) -> None:
    """Add the options; all after the program is its own."""
    parser.usage = "nbp run [options] (-m MODULE | PROGRAM) [arguments of the program]"
    parser.add_argument(
        "--store", metavar="PLACE", help="location of the record, by default in runs/"
    )
    parser.add_argument("--name", help="name of the run; by default the class of the model")
    parser.add_argument("--probes", metavar="A,B", help="presets to measure: default")
    parser.add_argument(
        "--budget", type=_budget, metavar="PERCENT", help="maximum cost in %% of step time, or none"
    )
    parser.add_argument("--on-compiled", choices=ON_COMPILED, help="calls of a compiled model")
    parser.add_argument("--model", metavar="CLASS", help="class to watch, if several are trained")
    parser.add_argument(
        "--alerts", action="store_const", const="1", help="measure everything that alert rules need"
    )
    parser.add_argument(
        "--control", action="store_const", const="1", help="allow nbp set, pause and so on"
    )
    parser.add_argument(
        "-m",
        dest="module",
        nargs=REMAINDER,
        metavar="MODULE",
        help="run a module, as python -m does",
    )
    parser.add_argument(
        "program", nargs=REMAINDER, metavar="PROGRAM", help="a file and its arguments"
    )
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Replace this process by the program."""
    module = ["-m", *asked.module] if asked.module else []
    words = [*module, *asked.program]
    if not words or asked.module == []:
        raise ProbeError("run what? name a file, or a module after -m; --help says more")
    sys.stdout.flush()
    given = {key: getattr(asked, name) for name, key in VARIABLES.items()}
    replace_process(words, {key: text for key, text in given.items() if text is not None})


def _budget(text: str) -> str:
    try:
        budget_of(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is neither a number nor none") from None
    return text
