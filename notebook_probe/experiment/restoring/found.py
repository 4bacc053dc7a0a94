"""The checkpoint that is to be loaded, if any, and by which rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from notebook_probe.catalogues.query import condition
from notebook_probe.experiment.params.sections import LoadParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.saving.units import SavedUnit, newest, read_config, read_units
from notebook_probe.record.format.notes import flattened

__all__ = ["FILE", "FRESH", "OTHER", "OWN", "UNWANTED", "Found", "find"]

UNWANTED, OWN, FILE, OTHER, FRESH = 1, 2, 3, 4, 5
"""The rules, in order."""


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a rule: a file, and its experiment if known."""

    rule: int
    path: str = ""
    place: ExperimentFolder | None = None


def find(place: ExperimentFolder, load: LoadParams | None, *, is_saving: bool) -> Found:
    """Follow the rules.

    Raises
    ------
    FileNotFoundError
        Nothing is where it was asked for.
    ValueError
        A query of the place itself, whose newest is taken anyhow; and a query that is none.
    """
    if load is not None and not load.do_restore:
        return Found(UNWANTED)
    asked = None if load is None else place.elsewhere(load)
    if load is not None and load.query is not None and is_saving and asked == place:
        raise ValueError(
            f"load_params: query={dict(load.query)!r} of the place that save_params name is "
            f"pointless: the newest there is loaded anyhow; name another exp_id, or use from_ckpt"
        )
    # Before `from_ckpt`: a restarted job continues from its own state instead of starting again.
    own = newest(place) if is_saving and place.exp_id is not None else None
    if own is not None:
        return Found(OWN, own.path, place)
    if load is not None and load.from_ckpt is not None:
        return Found(FILE, load.from_ckpt)
    if load is not None and asked is not None and (asked != place or not is_saving):
        return _matching(asked, load.query)
    return Found(FRESH)


def _matching(asked: ExperimentFolder, query: Mapping[str, Any] | None) -> Found:
    """Return the last saved unit that has a checkpoint and matches."""
    wanted = dict(query or {})
    if asked.exp_id is not None:
        wanted.setdefault("exp_id", asked.exp_id)
    meant = condition(wanted)
    units = [
        (unit, place)
        for place in _experiments(asked, wanted.get("exp_id"))
        for unit, fields in _with_params(place)
        if meant.matches(fields)
    ]
    if not units:
        raise FileNotFoundError(f"no checkpoint in {asked.kept_in} of a unit with {wanted}")
    # Steps may be equal in two experiments, so the time of saving comes first.
    unit, place = max(units, key=lambda pair: (pair[0].saved_at, pair[0].step))
    return Found(OTHER, unit.checkpoint, place)


def _experiments(asked: ExperimentFolder, exp_id: object) -> Iterator[ExperimentFolder]:
    """Yield the experiments of the collection; of a named one, only that."""
    folder = asked.kept_in
    names = sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []
    for name in names:
        if not isinstance(exp_id, str) or name == exp_id:
            yield asked.named(name)


def _with_params(place: ExperimentFolder) -> Iterator[tuple[SavedUnit, dict[str, Any]]]:
    """Yield units with a checkpoint, each with all fields for a query."""
    units = [unit for unit in read_units(place) if unit.saved_filters]
    params = dict(flattened(read_config(place))) if units else {}
    known = {f"config.{name}": value for name, value in params.items()}
    for unit in units:
        yield unit, {**known, **unit.fields()}
