"""A training that is begun again and again, and what should have been saved of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import LoadParams, SaveParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.restoring import Restored, restore
from notebook_probe.experiment.saving import Saver
from notebook_probe.train import Loop
from tests.train.checkpoints.kinds import loop_of

__all__ = ["Expected", "Life", "life", "place_of", "saved_as"]

BATCHES = 4  # of an epoch of kinds.loop_of


def saved_as(**given: Any) -> SaveParams:
    return read(SaveParams, {"dbname": "vision", "exp_id": "first", **given}, "save_params")


def place_of(folder: Path, save: SaveParams) -> ExperimentFolder:
    return ExperimentFolder(
        folder, dbname=save.dbname, exp_id=save.exp_id, cache_dir=save.cache_dir
    )


@dataclass
class Life:
    """One process of a training, from what it found to its end."""

    loop: Loop
    saver: Saver
    restored: Restored
    place: ExperimentFolder


def life(
    folder: Path,
    until: int,
    load: Mapping[str, Any] | None = None,
    *,
    fails_at: int | None = None,
    watched: bool = False,
    results: Mapping[str, Any] | None = None,
    validated: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    **save: Any,
) -> Life:
    """Go on from what is there until so many updates are done; ``fails_at`` raises before it."""
    params = saved_as(**save)
    place = place_of(folder, params)
    loop, data = loop_of("mlp", scheduler=None)
    loading = None if load is None else read(LoadParams, load, "load_params")
    restored = restore(loop, place, loading, is_saving=True)
    saver = Saver(params, place)
    found = Life(loop, saver, restored, place)
    if loop.n_updates >= until:
        return found
    run = None
    if watched:
        run = loop.watch(store=place.record, **restored.resume, probes=None, config=config)

    def begin(loop: Loop, data: Any) -> None:
        saver.begin(loop, was_loaded=restored.was_loaded)
        if loop.n_updates == 0 and validated is not None:
            saver.validated(loop, validated)

    def unit(loop: Loop, metrics: Any) -> None:
        k = loop.n_updates
        if k == fails_at:
            raise ArithmeticError("the loss is none")
        if results is not None:
            saver.results(loop, results)
        if validated is not None and params.save_valid_freq and k % params.save_valid_freq == 0:
            saver.validated(loop, validated)
        saver.unit(loop, metrics)
        if k == until:
            loop.stop()

    loop.on_start(begin)
    loop.on_step(unit)
    try:
        loop.run_epochs(data, 10**6)
    finally:
        saver.end(loop)
        if run is not None:
            run.close()
    return found


@dataclass
class Expected:
    """What is there, kept by hand: lists that are gone through unit by unit."""

    permanent: list[int] = field(default_factory=list)
    recent: list[int] = field(default_factory=list)
    newest: int | None = None
    ids: list[int] = field(default_factory=list)

    def lives(self, until: int, fails_at: int | None, save: Mapping[str, Any]) -> None:
        start = self.newest or 0
        self.ids = []
        if start >= until:
            return
        if self.newest is None and save["save_initial_filters"]:
            self.permanent.append(0)
            self.newest = 0
            self.ids.append(0)
        names = ["save_metrics_freq", "save_valid_freq", "save_filters_freq", "cache_filters_freq"]
        for k in range(start + 1, until + 1):
            met = {name for name in names if save[name] is not None and k % save[name] == 0}
            if k == fails_at or (k == until and not met):
                self.ids.append(k)  # the tail
            if k == fails_at:
                return
            if not met:
                continue
            self.ids.append(k)
            if "save_filters_freq" in met:
                self.permanent.append(k)
                self.newest = k
            elif "cache_filters_freq" in met:
                self.recent.append(k)
                self.newest = k
                while len(self.recent) > save["cache_max_num"]:
                    self.recent.remove(min(self.recent))
