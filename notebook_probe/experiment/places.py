"""Location of an experiment: one folder for each of its models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from notebook_probe.experiment.params.sections import LoadParams, SaveParams
from notebook_probe.home import home

__all__ = ["ExperimentFolder"]

EXPERIMENTS = "experiments"
"""Folder of experiments in the user's folder."""


@dataclass(frozen=True, slots=True)
class ExperimentFolder:
    """The folder ``<root>/<host>:<port>/<dbname>/<collname>/<exp_id>``, without missing parts.

    Parameters
    ----------
    root : Path
        ``experiments`` in ``NOTEBOOK_PROBE_HOME``, else in ``~/.notebook_probe``.
    host, port, dbname, collname, exp_id
        Each is one folder's name; without ``exp_id`` it names no experiment.
    cache_dir : Path, optional
        Holds the checkpoints, in the same folders; by default they are next to the record.

    Raises
    ------
    ValueError
        For a name that is no single folder's.

    Examples
    --------
    >>> place = ExperimentFolder(Path("/home/me/experiments"), dbname="vision", exp_id="first")
    >>> place.record.as_posix()
    '/home/me/experiments/vision/first/record.zarr'
    """

    root: Path
    host: str | None = None
    port: int | None = None
    dbname: str | None = None
    collname: str | None = None
    exp_id: str | None = None
    cache_dir: Path | None = None

    def __post_init__(self) -> None:
        for name in ("host", "dbname", "collname", "exp_id"):
            _check_folder(name, getattr(self, name))

    @classmethod
    def of(cls, save: SaveParams) -> ExperimentFolder:
        """Return the location where a model is saved."""
        return cls(home() / EXPERIMENTS, cache_dir=save.cache_dir).elsewhere(save)

    def elsewhere(self, names: SaveParams | LoadParams) -> ExperimentFolder:
        """Return the location of these names; None means the name here."""
        given: Mapping[str, Any] = {
            name: getattr(names, name) for name in ("host", "port", "dbname", "collname", "exp_id")
        }
        return replace(self, **{name: one for name, one in given.items() if one is not None})

    def named(self, exp_id: str) -> ExperimentFolder:
        """Return another experiment of the same collection."""
        return replace(self, exp_id=exp_id)

    @property
    def collection(self) -> Path:
        """Folder of all experiments of the collection, which differ in their ``exp_id``."""
        return self.root.joinpath(*self._above)

    @property
    def folder(self) -> Path:
        """All of the experiment but, with ``cache_dir``, its checkpoints."""
        return self.collection / self._own

    @property
    def record(self) -> Path:
        return self.folder / "record.zarr"

    @property
    def checkpoints(self) -> Path:
        """Folder of permanent checkpoints."""
        return self._kept / "checkpoints"

    @property
    def recent(self) -> Path:
        """Folder of recent checkpoints, of which the oldest are deleted."""
        return self._kept / "recent"

    @property
    def kept_in(self) -> Path:
        """The folder in which experiments of this collection have their checkpoints."""
        return (self.cache_dir or self.root).joinpath(*self._above)

    @property
    def _kept(self) -> Path:
        return self.kept_in / self._own

    @property
    def _above(self) -> list[str]:
        server = [str(one) for one in (self.host, self.port) if one is not None]
        return [part for part in (":".join(server), self.dbname, self.collname) if part]

    @property
    def _own(self) -> str:
        if self.exp_id is None:
            raise ValueError("exp_id is missing: without it, no experiment has a place")
        return self.exp_id


def _check_folder(name: str, value: str | None) -> None:
    if value is None:
        return
    if value in ("", ".", "..") or {*value} & {*"/\\\0"} or value != value.strip():
        raise ValueError(f"{name}={value!r} names a folder: no '/', '\\', and neither '.' nor '..'")
