"""``output``: the last lines that a training has printed, if the run keeps them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from notebook_probe.command_line.asked import count
from notebook_probe.command_line.reading.answers import OutputAnswer, OutputLine
from notebook_probe.command_line.reading.opening import add_run, heading, opened_run, title_line
from notebook_probe.command_line.reading.printing import (
    fitting_items,
    left_line,
    print_answer,
    tokens,
)
from notebook_probe.record.views.printed_lines import PrintedLine, printed_lines

__all__ = ["add"]

MOST_LINES = 200


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    add_run(parser)
    parser.add_argument(
        "--lines",
        type=count,
        default=MOST_LINES,
        metavar="N",
        help="number of last lines, %(default)s by default",
    )
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Print the last lines, each with the number of steps completed."""
    run = opened_run(asked)
    last = printed_lines(run.events, asked.lines)
    newest, left_out = fitting_items(last[::-1], _line, _texts, asked.limit, tokens(run.name))
    answer = OutputAnswer(**heading(run), lines=newest[::-1], left_out=left_out)
    print_answer(answer, _text(answer), asked)


def _line(one: PrintedLine) -> OutputLine:
    return OutputLine(step=one.step, text=one.text)


def _texts(line: OutputLine) -> list[str]:
    return [f"{line.step}: {line.text}"]


def _text(answer: OutputAnswer) -> Iterator[str]:
    yield title_line(answer)
    yield from left_line(answer.left_out, "earlier lines")
    for line in answer.lines:
        yield from _texts(line)
    if not answer.lines:
        yield "no output is kept; nbp.keep_output(run) keeps it"
