"""``compare``: settings that differ between two runs, results, and where the runs diverge."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from notebook_probe.command_line.asked import RUN, add_catalogue, location_of
from notebook_probe.command_line.printed import cell, fitting, plain, print_json, width
from notebook_probe.command_line.show import row_at
from notebook_probe.compare import AXES, Parting, Partings, differences, parting
from notebook_probe.errors import RecordFormatError, UnknownNameError, near
from notebook_probe.lineage.table import labels_of
from notebook_probe.opened import OpenedRun, open_run
from notebook_probe.record.format.source import ROOT

__all__ = ["add"]

RESULTS = ("loss.", "eval.", "best.", "last.", "steps", "duration_s", "state", "alerts")
ALWAYS_DIFFER = (
    "run",
    "run_id",
    "name",
    "created",
    "updated",
    "size_bytes",
    "first.",
    "min.",
    "max.",
)
"""Beginnings of columns that differ between any two runs."""
PACKAGES = "packages."
USUAL = ("grad_norm", "update_ratio", "weight_norm", "output_std")
"""Default quantities for comparing runs that have them."""


def add(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("runs", nargs=2, metavar="RUN", help=RUN)
    parser.add_argument("--quantity", help=f"quantity to compare; by default {', '.join(USUAL)}")
    parser.add_argument("--by", default="step", help=f"x axis: {', '.join(AXES)}")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_catalogue(parser)
    parser.set_defaults(do=do)


def do(asked: Namespace) -> None:
    """Print the comparison."""
    places = [location_of(one, asked) for one in asked.runs]
    rows = [row_at(place) for place in places]
    differing = [
        name for name in _names(rows) if _comparable(rows[0], name) != _comparable(rows[1], name)
    ]
    settings = [name for name in differing if not name.startswith(RESULTS)]
    results = [name for name in differing if name.startswith(RESULTS)]
    this, other = map(open_run, places)
    model, (found, unread) = differences(other, this).model, _parting(this, other, asked)
    if asked.json:
        told = {name: [row.get(name) for row in rows] for name in (*settings, *results)}
        print_json(
            {
                "runs": places,
                "differing": told,
                "model": model,
                "parting": {**_as_object(found, unread), "unread": unread},
            }
        )
        return
    heads = [plain(one) for one in labels_of(rows)]
    for title, names in (("settings", settings), ("results", results)):
        lines = [
            (title, *heads),
            *((plain(one), *(cell(row.get(one)) for row in rows)) for one in names),
        ]
        print(fitting(lines, width())[0] if names else f"the same {title}")
        print()
    if model:
        print(f"{heads[1]} compared with {heads[0]}: {plain(model)}")
    for line in _lines(found, unread):
        print(plain(line))


def _names(rows: list[dict[str, Any]]) -> Iterator[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        # A package that only one program has loaded, such as for a picture, is no setting.
        is_told = not name.startswith(PACKAGES) or all(name in row for row in rows)
        if is_told and not name.startswith(ALWAYS_DIFFER):
            yield name


def _comparable(row: Mapping[str, Any], name: str) -> str:
    return repr(row.get(name))  # as text, since NaN is not equal to itself


def _parting(
    this: OpenedRun, other: OpenedRun, asked: Namespace
) -> tuple[list[Partings], dict[str, str]]:
    """Return where the second run diverges from the first by each quantity, the earliest first.

    Quantities that are damaged in a record follow, each with the error.
    """
    known = _quantities(this) & _quantities(other)
    if asked.quantity and this.recorded_name(asked.quantity) not in known:
        raise UnknownNameError(f"they have no {asked.quantity!r}; {near(asked.quantity, known)}")
    common = [asked.quantity] if asked.quantity else [one for one in USUAL if one in known]
    found, unread = [], {}
    for name in common:
        try:
            found.append(parting(other, this, name, by=asked.by))
        except RecordFormatError as error:
            unread[name] = str(error)
    return sorted(found, key=_first_step), unread


def _first_step(found: Partings) -> tuple[float, float]:
    """Return the first step of a divergence, then that of a difference at the last rows."""
    steps = ([one.step for one in modules] for modules in (found.found, found.lately))
    certain, late = (min(one, default=math.inf) for one in steps)
    return certain, late


def _quantities(run: OpenedRun) -> set[str]:
    """Return the quantities measured at modules."""
    return {
        variable.name
        for stream in run.streams.values()
        if {*stream.modules} - {ROOT}
        for variable in stream.variables
    }


def _lines(every: list[Partings], unread: Mapping[str, str]) -> list[str]:
    """Return the earliest divergence in words, and the quantities that were compared, or not."""
    damaged = [f"{name} is not compared: {why}" for name, why in unread.items()]
    if every:
        names = ", ".join(one.quantity for one in every)
        return [*str(every[0]).splitlines(), f"compared by {names}", *damaged]
    return damaged or [f"they have none of {', '.join(USUAL)} in common; --quantity names another"]


def _as_object(every: list[Partings], unread: Mapping[str, str]) -> dict[str, Any]:
    """Return all that the lines say."""
    if not every:
        return {"text": _lines(every, unread)[0], "asked": []}
    first = every[0]
    return {
        "text": first.text,
        "asked": [{"quantity": one.quantity, "text": one.text} for one in every],
        "this": first.this,
        "others": first.others,
        "quantity": first.quantity,
        "by": first.by,
        "bound": first.bound,
        "factor": first.factor,
        "is_signed": first.is_signed,
        "modules": [_module(one, first) for one in first.found],
        "lately": [_module(one, first) for one in first.lately],
        "within": first.within,
        "missing": first.missing,
        "left_out": first.left_out,
    }


def _module(one: Parting, of: Partings) -> dict[str, Any]:
    return {
        "module": one.module,
        "step": one.step,
        "there": of.words(one.there),
        "now": of.words(one.now),
        "there_factor": _factor(one.there, of),
        "now_factor": _factor(one.now, of),
        "rows": one.n_rows,
        "rows_wanted": one.n_wanted,
    }


def _factor(far: float, of: Partings) -> float:
    """Return a distance as a ratio; as a number of spreads where these are counted."""
    return far if of.is_signed else 10.0**far
