"""``quantities``: what a run has recorded, and what could be attached to a module."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from notebook_probe.command_line.asked import add_catalogue
from notebook_probe.command_line.reading.answers import (
    AttachableLine,
    QuantitiesAnswer,
    RecordedLine,
)
from notebook_probe.command_line.reading.opening import opened_run
from notebook_probe.command_line.reading.printing import (
    add_output,
    fitting_items,
    left_line,
    print_answer,
    tokens,
)
from notebook_probe.command_line.reading.rows import measured_at
from notebook_probe.errors import UnknownNameError, near
from notebook_probe.opened import OpenedRun
from notebook_probe.printable import counted
from notebook_probe.record.format.source import StreamView

__all__ = ["add"]

L = TypeVar("L", RecordedLine, AttachableLine)


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="[WORD] [RUN]",
        help="part of a name or description, or a run, to list its quantities",
    )
    add_output(parser)
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Print them."""
    word, asked.run = _word_and_run(asked.words)
    run = None if asked.run is None else opened_run(asked)
    recorded = None if run is None else [one for one in _recorded(run) if _is_about(one, word)]
    attachable = None if run is not None and word is None else [*_attachable(word)]
    if word is not None and not recorded and not attachable:
        raise UnknownNameError(f"no quantity is about {word!r}; {near(word, _names(run))}")
    here, n_here = _fitting(recorded or [], asked.limit, 0)
    used = sum(tokens(_line(one)) for one in here)
    there, n_there = _fitting(attachable or [], asked.limit, used)
    answer = QuantitiesAnswer(
        word,
        None if run is None else run.location,
        None if recorded is None else here,
        None if attachable is None else there,
        n_here + n_there,
    )
    print_answer(answer, _text(answer), asked)
    return 0


def _word_and_run(words: list[str]) -> tuple[str | None, str | None]:
    """Return the word and the run: of one argument that is a place, the run."""
    match words:
        case []:
            return None, None
        case [one] if "://" in one or Path(one).expanduser().exists():
            return None, one
        case [one]:
            return one, None
        case [word, run]:
            return word or None, run
    raise UnknownNameError(f"{' '.join(words)}: a word and a run are allowed, in this order")


def _fitting(lines: Sequence[L], limit: int, used: int) -> tuple[tuple[L, ...], int]:
    return fitting_items(lines, lambda one: one, lambda one: [_line(one)], limit, used)


def _recorded(run: OpenedRun) -> Iterator[RecordedLine]:
    """Yield the quantities of a record by name."""
    numbers = [(one, False) for one in run.streams.values()]
    views = [*numbers, *((one, True) for one in run.elements.values())]
    names = dict.fromkeys((v.name, is_vector) for one, is_vector in views for v in one.variables)
    places = measured_at(run.streams.values()), measured_at(run.elements.values())
    for name, is_vector in sorted(names):
        holding = [one for one, of in views if of == is_vector and _has(one, name)]
        variable = next(one for one in holding[0].variables if one.name == name)
        ends = [int(one.steps(one.n_rows - 1, one.n_rows)[0]) for one in holding if one.n_rows]
        yield RecordedLine(
            name=name,
            units=variable.units,
            long_name=variable.long_name,
            schedules=tuple(one.name for one in holding),
            modules=len(places[is_vector][name]),
            rows=sum(one.n_rows for one in holding),
            last_step=max(ends, default=None),
            is_vector=is_vector,
        )


def _has(stream: StreamView, quantity: str) -> bool:
    return any(one.name == quantity for one in stream.variables)


def _attachable(word: str | None) -> Iterator[AttachableLine]:
    """Yield the quantities that can be attached; importing them takes seconds, for torch."""
    from notebook_probe.quantities import quantities

    for name in sorted(quantities):
        one = quantities[name]
        line = AttachableLine(one.name, one.units, one.summary, one.aliases, one.needs)
        if _is_about(line, word):
            yield line


def _names(run: OpenedRun | None) -> list[str]:
    from notebook_probe.quantities import quantities

    return [*quantities, *(() if run is None else (one.name for one in _recorded(run)))]


def _is_about(line: RecordedLine | AttachableLine, word: str | None) -> bool:
    if word is None:
        return True
    told = (line.long_name,) if isinstance(line, RecordedLine) else (line.summary, *line.aliases)
    return word.lower() in " ".join((line.name, *told)).lower()


def _text(answer: QuantitiesAnswer) -> Iterator[str]:
    if answer.recorded is not None:
        yield f"recorded in {answer.run}:"
        yield from map(_line, answer.recorded)
    if answer.attachable is not None:
        yield "can be attached, run.attach(module, quantity):"
        yield from map(_line, answer.attachable)
    else:
        yield "nbp quantities WORD searches what can be attached"
    yield from left_line(answer.left_out, "quantities")


def _line(one: RecordedLine | AttachableLine) -> str:
    units = "" if one.units == "1" else f" [{one.units}]"
    if isinstance(one, AttachableLine):
        return f"{one.name}{units}: {one.summary}"
    where = counted(one.modules, "element" if one.is_vector else "module")
    told = one.long_name if one.long_name != one.name else ""
    schedules = ", ".join(one.schedules)
    return (
        f"{one.name}{units}: {where}, {counted(one.rows, 'row')} ({schedules}) "
        f"up to step {one.last_step}. {told}"
    )
