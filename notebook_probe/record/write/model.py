"""The model that a record is of: whether a given one is the same, and how its table grows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from notebook_probe.errors import RecordMismatchError
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import ModuleRow

__all__ = ["check_same_model", "differing", "extended", "labelled"]

MOST = 4
"""Modules named of each kind of difference."""


def labelled(modules: Iterable[ModuleRow]) -> tuple[ModuleRow, ...]:
    """Return the rows with names as on module axes."""
    return tuple(replace(row, name=module_label(row.name)) for row in modules)


def extended(recorded: Sequence[ModuleRow], current: Sequence[ModuleRow]) -> tuple[ModuleRow, ...]:
    """Return the table extended by the modules that only ``current`` has.

    Existing rows stay, also of removed modules.
    """
    places = {row.name: place for place, row in enumerate(recorded)}
    added = [row for row in current if row.name not in places]
    places |= {row.name: len(recorded) + i for i, row in enumerate(added)}
    parents = [places[current[row.parent].name] if row.parent >= 0 else -1 for row in added]
    return (*recorded, *(replace(row, parent=p) for row, p in zip(added, parents, strict=True)))


def check_same_model(
    location: str,
    recorded: Sequence[ModuleRow],
    current: Sequence[ModuleRow],
    changed: Iterable[str] = (),
) -> None:
    """Raise RecordMismatchError, naming the differences, unless the modules are the same.

    Parameters
    ----------
    changed : iterable of str
        Modules that were added, removed or replaced while the record was written: they may differ.
    """
    free = set(changed)
    old = {row.name: row for row in recorded if row.name not in free}
    new = {row.name: row for row in current if row.name not in free}
    missing = [row for name, row in old.items() if name not in new]
    extra = [row for name, row in new.items() if name not in old]
    renamed = _renamed(missing, extra)
    pairs = [(old[name], new[name]) for name in old if name in new]
    differences = [
        _listed("other modules", [_both(a, b) for a, b in pairs if _identity(a) != _identity(b)]),
        _listed("renamed", [f"{a.name} is given as {b.name}" for a, b in renamed]),
        _listed("not given", [_one(row) for row in missing if row not in [a for a, _ in renamed]]),
        _listed("not there", [_one(row) for row in extra if row not in [b for _, b in renamed]]),
    ]
    if any(differences):
        raise RecordMismatchError(
            f"{location} holds the record of another model; "
            f"{'; '.join(filter(None, differences))}. Nothing was changed: give another folder, "
            f"or overwrite=True"
        )


def differing(recorded: Sequence[ModuleRow], current: Sequence[ModuleRow]) -> set[str]:
    """Names of modules that are in one of the tables only, or not the same in both."""
    old, new = ({row.name: _identity(row) for row in rows} for rows in (recorded, current))
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _identity(row: ModuleRow) -> tuple[str, int]:
    """Return what identifies a module; its children are compared separately."""
    return row.class_name, row.n_own_params


def _renamed(
    missing: Sequence[ModuleRow], extra: Sequence[ModuleRow]
) -> list[tuple[ModuleRow, ModuleRow]]:
    """Pairs of a missing module and an extra one that is like it, in definition order."""
    free, pairs = list(extra), []
    for row in missing:
        like = next((other for other in free if _likeness(other) == _likeness(row)), None)
        if like is not None:
            free.remove(like)
            pairs.append((row, like))
    return pairs


def _likeness(row: ModuleRow) -> tuple[str, int, int]:
    return row.class_name, row.n_params, row.name.count(".")


def _one(row: ModuleRow) -> str:
    return f"{row.name} ({_kind(row)})"


def _both(recorded: ModuleRow, current: ModuleRow) -> str:
    return f"{recorded.name} ({_kind(recorded)} there, {_kind(current)} given)"


def _kind(row: ModuleRow) -> str:
    own = f", {row.n_own_params} parameters" if row.n_own_params else ""
    return f"{row.class_name}{own}"


def _listed(what: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    more = f" and {len(items) - MOST} more" if len(items) > MOST else ""
    return f"{what}: {', '.join(items[:MOST])}{more}"
