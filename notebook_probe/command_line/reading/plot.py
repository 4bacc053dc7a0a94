"""``plot``: series as a picture in a file, or as lines of characters."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from notebook_probe.checks import file_ending
from notebook_probe.command_line.asked import check_target
from notebook_probe.command_line.reading.answers import PlotAnswer, SparklineLine
from notebook_probe.command_line.reading.opening import add_run, heading, opened_run, title_line
from notebook_probe.command_line.reading.printing import (
    fitting_items,
    left_line,
    number,
    print_answer,
)
from notebook_probe.command_line.reading.rows import SeriesName, matching
from notebook_probe.command_line.reading.series import add_range, chosen_rows, refuse_empty
from notebook_probe.command_line.reading.sparkline import BLOCKS, DIGITS, sparkline
from notebook_probe.errors import QueryError
from notebook_probe.opened import OpenedRun
from notebook_probe.record.store.destination import import_extra, new_file

__all__ = ["add"]

KINDS: dict[str, Literal["png", "svg"]] = {".png": "png", ".svg": "svg"}
MOST_LINES = 12
"""Maximum number of series that can be distinguished in one picture."""


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    add_run(parser)
    add_range(parser, "--to-step")
    parser.add_argument(
        "--to", metavar="FILE", help=f"picture to write: {', '.join(KINDS)}; needs matplotlib"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument(
        "--ascii", action="store_true", help="print a line of 60 characters per series"
    )
    parser.add_argument(
        "--log", action="store_true", help="logarithmic axis of values, in the file"
    )
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Write the file, print the lines."""
    _check(asked)
    run = opened_run(asked)
    names = matching(run, asked.module, asked.quantity)
    series, left_out = fitting_items(
        names, lambda name: _line(run, name, asked), lambda one: [*_lines(one)], asked.limit
    )
    refuse_empty(series, asked)
    file = None
    if asked.to:
        left_out += max(0, len(series) - MOST_LINES)
        series = series[:MOST_LINES]
        file = _write(run, series, asked)
    answer = PlotAnswer(**heading(run), file=file, series=series, left_out=left_out)
    print_answer(answer, _text(answer, asked), asked)
    return 0


def _check(asked: Namespace) -> None:
    if not (asked.to or asked.ascii):
        raise QueryError("plot: name a file with --to, or print lines with --ascii")
    if asked.to:
        file_ending("--to", asked.to, KINDS, QueryError)


def _line(run: OpenedRun, name: SeriesName, asked: Namespace) -> SparklineLine | None:
    rows = chosen_rows(run, name, asked)
    if not len(rows):
        return None
    finite = rows.values[np.isfinite(rows.values)]
    least, greatest = (
        (float(str(finite.min())), float(str(finite.max()))) if len(finite) else (None, None)
    )
    ends = rows.at(np.array([0, len(rows) - 1])).points()
    line = sparkline(rows.steps, rows.values, DIGITS if asked.json else _levels())
    return SparklineLine(
        module=name[0],
        quantity=name[1].name,
        line=line,
        first=ends[0],
        last=ends[1],
        least=least,
        greatest=greatest,
    )


def _levels() -> str:
    """Return block characters, or digits where the output cannot have them."""
    try:
        BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return DIGITS
    return BLOCKS


def _write(run: OpenedRun, series: Sequence[SparklineLine], asked: Namespace) -> str:
    import_extra("matplotlib", "lab", "a picture")
    from notebook_probe.figures.lines import LineOptions, lines
    from notebook_probe.figures.style import encoded

    window = (min(one.first[0] for one in series), max(one.last[0] for one in series))
    names = [(one.module, one.quantity) for one in series]
    figure = lines(run, names, window=window, look=LineOptions(log_y=asked.log))
    check_target(asked)
    target = Path(asked.to).expanduser()
    with new_file(target, overwrite=asked.overwrite) as partial:
        partial.write_bytes(encoded(figure, KINDS[target.suffix.lower()]))
    return str(target)


def _text(answer: PlotAnswer, asked: Namespace) -> Iterator[str]:
    if answer.file is not None:
        yield answer.file
    if asked.ascii:
        yield title_line(answer)
        for line in answer.series:
            yield from _lines(line)
    yield from left_line(answer.left_out, "series")


def _lines(line: SparklineLine) -> Iterator[str]:
    (first, before), (last, after) = line.first, line.last
    yield (
        f"{line.module} {line.quantity}: {number(before)} at step {first}, {number(after)} at "
        f"step {last}; from {number(line.least)} to {number(line.greatest)}"
    )
    yield line.line
