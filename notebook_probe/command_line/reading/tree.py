"""``tree``: modules of the model, and what is known at each."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter

from notebook_probe.command_line.reading.answers import ModuleLine, TreeAnswer
from notebook_probe.command_line.reading.opening import add_run, heading, opened_run, title_line
from notebook_probe.command_line.reading.printing import (
    count,
    fitting_items,
    left_line,
    print_answer,
    tokens,
)
from notebook_probe.command_line.reading.rows import last_values, measured_at
from notebook_probe.opened import OpenedRun
from notebook_probe.record.format.source import ModuleRow

__all__ = ["add"]

HEAD = "module, class, parameters (its own), quantities, rules of alerts"


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    add_run(parser)
    parser.add_argument("--depth", type=count, metavar="N", help="so many levels; by default all")
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Print the modules."""
    run = opened_run(asked)
    measured, alerts = _measured(run), _alerts(run)
    ratios = last_values(run.streams.values(), "update_ratio")
    depths = _depths(run.modules)
    rows = [row for row in run.modules if asked.depth is None or depths[row.name] <= asked.depth]

    def line(row: ModuleRow) -> ModuleLine:
        return ModuleLine(
            row.name,
            row.class_name,
            depths[row.name],
            row.n_params,
            row.n_own_params,
            bool(ratios[row.name]) if row.name in ratios else None,
            measured[row.name],
            tuple(alerts[row.name]),
        )

    modules, left_out = fitting_items(
        rows, line, lambda one: [_line(one)], asked.limit, tokens(HEAD) + tokens(run.name)
    )
    answer = TreeAnswer(**heading(run), modules=modules, left_out=left_out)
    print_answer(answer, _text(answer), asked)
    return 0


def _measured(run: OpenedRun) -> Mapping[str, int]:
    """Return the number of measured quantities by module."""
    every = measured_at(run.streams.values()).values()
    return Counter(module for modules in every for module in modules)


def _alerts(run: OpenedRun) -> Mapping[str, dict[str, None]]:
    """Return the rules of the alerts by module, each once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for alert in sorted(run.alerts, key=attrgetter("step")):
        for module in alert.modules:
            found[module][alert.rule] = None
    return found


def _depths(modules: tuple[ModuleRow, ...]) -> dict[str, int]:
    """Return the number of parents of each module; a damaged parent ends the way up."""
    depths: dict[str, int] = {}
    for place, row in enumerate(modules):
        is_known = 0 <= row.parent < place
        depths[row.name] = depths[modules[row.parent].name] + 1 if is_known else 0
    return depths


def _text(answer: TreeAnswer) -> Iterator[str]:
    yield title_line(answer)
    yield HEAD
    yield from map(_line, answer.modules)
    yield from left_line(answer.left_out, "modules")


def _line(one: ModuleLine) -> str:
    own = f" ({one.n_own_params})" if one.n_own_params else ""
    still = ", not updated" if one.updated is False else ""
    alerts = f": {', '.join(one.alerts)}" if one.alerts else ""
    return f"{one.name}, {one.class_name}, {one.n_params}{own}{still}, {one.quantities}{alerts}"
