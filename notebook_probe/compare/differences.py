"""Differences between two runs: in their configs, and in their models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from notebook_probe.record.format.notes import CONFIG, flattened, read_notes
from notebook_probe.record.format.source import ModuleRow, check_opened
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["ConfigDifference", "Differences", "differ_in_seed_alone", "differences"]

UNKNOWN = "–"
LONGEST = 40


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """Config key that differs, with both values; None if it was not set."""

    key: str
    """Key, nested with dots, ``optimizer.lr``."""
    there: Any
    here: Any

    def __str__(self) -> str:
        return f"{self.key} {_value_text(self.there)}, here {_value_text(self.here)}"


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences of another run from this one."""

    settings: tuple[ConfigDifference, ...]
    model: str
    """Difference of the models in words; empty if they are equal."""
    has_config: bool
    """True if both runs have a config."""

    @property
    def is_seed_alone(self) -> bool:
        """True if only a seed differs, ``seed`` or ``data.random_seed`` of the config."""
        seeds = all(one.key.lower().endswith("seed") for one in self.settings)
        return self.has_config and seeds and not self.model

    @property
    def text(self) -> str:
        """Differences in a line; a dash without configs and with equal models.

        Examples
        --------
        >>> rate = ConfigDifference("lr", 0.001, 0.003)
        >>> Differences((rate,), "GroupNorm, here BatchNorm2d", True).text
        'GroupNorm, here BatchNorm2d; lr 0.001, here 0.003'
        """
        parts = [self.model, *map(str, self.settings)]
        return "; ".join(filter(None, parts)) or ("" if self.has_config else UNKNOWN)


def differences(this: RunSource, other: RunSource) -> Differences:
    """Return how the setup of another run differs from this one's.

    Parameters
    ----------
    this, other : Source
        Runs or opened records; the ``config`` given to `watch` and the tables of their modules are
        read.

    Examples
    --------
    >>> differences(run, nbp.open_run("runs/digits-cnn-8.zarr")).text  # doctest: +SKIP
    'lr 0.001, here 0.003'
    """
    check_opened(this, other)
    configs = [read_notes(run.snapshot().attrs, CONFIG) for run in (this, other)]
    here, there = (dict(flattened(config)) for config in configs)
    keys = dict.fromkeys([*here, *there]) if all(configs) else {}
    settings = (ConfigDifference(key, there.get(key), here.get(key)) for key in keys)
    return Differences(
        tuple(one for one in settings if one.there != one.here),
        _of_models(this.modules, other.modules),
        all(configs),
    )


def differ_in_seed_alone(runs: Sequence[RunSource]) -> bool:
    """Return whether runs differ only in their seed; False without configs.

    Examples
    --------
    >>> differ_in_seed_alone([nbp.open_run(one) for one in paths])  # doctest: +SKIP
    True
    """
    return all(differences(runs[0], other).is_seed_alone for other in runs[1:])


def _of_models(here: Sequence[ModuleRow], there: Sequence[ModuleRow]) -> str:
    """Return the first difference of names, classes or sizes; empty if a table is missing."""
    if not (here and there):
        return ""
    mine, theirs = ({row.name: row for row in rows} for rows in (here, there))
    common = [name for name in mine if name in theirs]
    if len(common) < max(len(mine), len(theirs)):
        return f"another model: {len(common)} of {len(mine)} modules in common"
    classes = dict.fromkeys((theirs[one].class_name, mine[one].class_name) for one in common)
    others = [f"{there}, here {here}" for there, here in classes if there != here]
    if others:
        return "; ".join(others)
    sizes = [one for one in common if mine[one].n_own_params != theirs[one].n_own_params]
    return f"other sizes at {', '.join(sizes[:2])}{' …' * (len(sizes) > 2)}" if sizes else ""


def _value_text(value: Any) -> str:
    """Return a setting as a short text."""
    if value is None:
        return "not set"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
