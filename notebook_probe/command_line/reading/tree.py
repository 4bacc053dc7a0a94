"""``tree``: modules of the model, and what is known at each."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from operator import attrgetter

from notebook_probe.command_line.asked import count
from notebook_probe.command_line.reading.answers import GroupLine, ModuleLine, TreeAnswer
from notebook_probe.command_line.reading.opening import add_run, heading, opened_run, title_line
from notebook_probe.command_line.reading.ownership import GroupOwnership
from notebook_probe.command_line.reading.printing import (
    fitting_items,
    left_line,
    number,
    print_answer,
    tokens,
)
from notebook_probe.command_line.reading.rows import last_values, measured_at
from notebook_probe.opened import OpenedRun
from notebook_probe.record.format.source import ModuleRow

__all__ = ["add"]

HEAD = "module, class, parameters (its own), optimizer group, recorded quantities: alerts"


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    add_run(parser)
    parser.add_argument("--depth", type=count, metavar="N", help="number of levels, by default all")
    parser.set_defaults(do=do)


def do(asked: Namespace) -> int:
    """Print the modules."""
    run = opened_run(asked)
    measured, alerts = _measured(run), _alerts(run)
    owned = GroupOwnership.read(run.attrs)
    ratios = last_values(run.streams.values(), "update_ratio")
    depths = _depths(run.modules)
    rows = [row for row in run.modules if asked.depth is None or depths[row.name] <= asked.depth]

    def line(row: ModuleRow) -> ModuleLine:
        return ModuleLine(
            name=row.name,
            class_name=row.class_name,
            depth=depths[row.name],
            n_params=row.n_params,
            n_own_params=row.n_own_params,
            trainable=owned.trainable.get(row.name),
            groups=owned.held_by.get(row.name, ()),
            updated=bool(ratios[row.name]) if row.name in ratios else None,
            quantities=measured[row.name],
            alerts=tuple(alerts[row.name]),
        )

    used = tokens(HEAD) + tokens(run.name)
    groups, n_groups = fitting_items(
        owned.groups, lambda one: one, lambda one: [_group_line(one)], asked.limit, used
    )
    used += sum(tokens(_group_line(one)) for one in groups)
    modules, n_modules = fitting_items(rows, line, lambda one: [_line(one)], asked.limit, used)
    answer = TreeAnswer(
        **heading(run), modules=modules, groups=groups, left_out=n_groups + n_modules
    )
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
    yield from map(_group_line, answer.groups)
    yield HEAD
    yield from map(_line, answer.modules)
    yield from left_line(answer.left_out, "lines")


def _group_line(one: GroupLine) -> str:
    return f"group {one.group}: {one.optimizer}, lr {number(one.lr)}, {one.contents}"


def _line(one: ModuleLine) -> str:
    own = f" ({one.n_own_params})" if one.n_own_params else ""
    frozen = ", frozen" if one.trainable is False else ""
    held = f", group {', '.join(map(str, one.groups))}" if one.groups else ""
    lost = ", in no group" if one.trainable and not one.groups else ""
    still = ", not updated" if one.updated is False else ""
    alerts = f": {', '.join(one.alerts)}" if one.alerts else ""
    n_quantities = "1 quantity" if one.quantities == 1 else f"{one.quantities} quantities"
    return (
        f"{one.name}, {one.class_name}, {one.n_params}{own}{frozen}{held}{lost}{still}, "
        f"{n_quantities}{alerts}"
    )
