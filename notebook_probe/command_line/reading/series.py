"""``series``: numbers of some modules over steps, in few points that keep the extremes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

import numpy as np

from notebook_probe.command_line.asked import count
from notebook_probe.command_line.reading.answers import SeriesAnswer, SeriesLine
from notebook_probe.command_line.reading.opening import add_run, heading, opened_run, title_line
from notebook_probe.command_line.reading.printing import (
    fitting_items,
    left_line,
    number,
    print_answer,
    tokens,
    wrapped,
)
from notebook_probe.command_line.reading.rows import (
    FEWEST_POINTS,
    SeriesName,
    SeriesRows,
    matching,
    read_rows,
    thinned_rows,
)
from notebook_probe.errors import QueryError, UnknownNameError
from notebook_probe.opened import OpenedRun
from notebook_probe.printable import counted

__all__ = ["add", "add_range", "chosen_rows", "refuse_empty"]

N_POINTS = 40


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    add_run(parser)
    add_range(parser, "--to")
    parser.set_defaults(do=do)


def add_range(parser: ArgumentParser, end: str) -> None:
    """Add the arguments that choose series and their rows; ``end`` names that of the last step."""
    parser.add_argument(
        "module",
        metavar="MODULE",
        help="path or glob, such as 'layer1.*'; '(root)' for the whole model",
    )
    parser.add_argument("quantity", metavar="QUANTITY", help="name or glob, such as 'output_*'")
    parser.add_argument("--from", dest="first", type=count, metavar="STEP", help="first step")
    parser.add_argument(end, dest="last_step", type=count, metavar="STEP", help="last step")
    parser.add_argument("--last", type=count, metavar="N", help="only the last N rows")
    parser.add_argument(
        "--around", type=count, metavar="STEP", help="all rows near this step, not thinned"
    )
    parser.add_argument(
        "--points",
        type=count,
        default=N_POINTS,
        metavar="N",
        help="points per series, %(default)s by default",
    )


def do(asked: Namespace) -> int:
    """Print the series."""
    run = opened_run(asked)
    head = heading(run)
    names = matching(run, asked.module, asked.quantity)
    used = tokens(str(head["name"]))
    found, left_out = fitting_items(
        names, lambda name: _line(run, name, asked), _lines, asked.limit, used
    )
    refuse_empty(found, asked)
    answer = SeriesAnswer(**head, series=found, left_out=left_out)
    print_answer(answer, _text(answer), asked)
    return 0


def chosen_rows(run: OpenedRun, name: SeriesName, asked: Namespace) -> SeriesRows:
    """Return the rows that the options choose."""
    if asked.points < FEWEST_POINTS:
        raise QueryError(f"--points {asked.points}: at least {FEWEST_POINTS}: ends and extremes")
    module, variable = name
    stop = None if asked.last_step is None else asked.last_step + 1
    rows = read_rows(run, module, variable.name, asked.first, stop)
    if asked.last is not None:
        rows = rows.at(slice(max(0, len(rows) - asked.last), None))
    if asked.around is None:
        return rows
    middle = int(np.searchsorted(rows.steps, asked.around))
    first = max(0, min(middle - asked.points // 2, len(rows) - asked.points))
    return rows.at(slice(first, first + asked.points))


def refuse_empty(found: object, asked: Namespace) -> None:
    """Raise if the names are recorded and no row is in the range."""
    if not found:
        raise UnknownNameError(
            f"no row of {asked.quantity!r} at {asked.module!r} is measured in this range"
        )


def _line(run: OpenedRun, name: SeriesName, asked: Namespace) -> SeriesLine | None:
    rows = chosen_rows(run, name, asked)
    if not len(rows):
        return None
    kept = thinned_rows(rows, asked.points)
    module, variable = name
    return SeriesLine(
        module, variable.name, variable.units, len(rows), len(kept) < len(rows), kept.points()
    )


def _text(answer: SeriesAnswer) -> Iterator[str]:
    yield title_line(answer)
    for line in answer.series:
        yield from _lines(line)
    yield from left_line(answer.left_out, "series")


def _lines(line: SeriesLine) -> Iterator[str]:
    units = "" if line.units == "1" else f" [{line.units}]"
    rows = counted(line.rows, "row")
    points = f"{len(line.points)} of {rows}" if line.thinned else rows
    yield f"{line.module} {line.quantity}{units}, {points}, step:value"
    yield from wrapped([f"{step}:{number(value)}" for step, value in line.points])
