"""Checkpoints of one training, in all its locations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from notebook_probe.errors import CheckpointError, ClosedRunError
from notebook_probe.json_numbers import json_number
from notebook_probe.record.store.location import Location, local_path
from notebook_probe.run.run import Run
from notebook_probe.train.checkpoints.contents import SavedTraining, check, contents, restore
from notebook_probe.train.checkpoints.fitting import Wanted
from notebook_probe.train.checkpoints.index import Checkpoint
from notebook_probe.train.checkpoints.keeping import Keep
from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.ranks import own_rank
from notebook_probe.train.checkpoints.store import CheckpointStore

__all__ = ["Kept"]


class Kept:
    """Saving and loading of a training's checkpoints.

    Parameters
    ----------
    loop : SavedTraining
    """

    def __init__(self, loop: SavedTraining) -> None:
        self._loop = loop
        self._stores: dict[str, CheckpointStore] = {}

    def store(self, location: Location) -> CheckpointStore:
        """Return the store of a location."""
        store = CheckpointStore(location)
        return self._stores.setdefault(store.place.name, store)

    def save(
        self,
        location: Location,
        keep: Keep | None = None,
        *,
        background: bool = False,
    ) -> None:
        """Save the state between two steps; under a retention rule, or permanently.

        With several processes, each calls it, and the first one writes.
        """
        self._save(self.store(location), keep, background=background)

    def _save(self, store: CheckpointStore, keep: Keep | None, *, background: bool) -> None:
        loop = self._loop
        writes = own_rank()[0] == 0
        by_rule = writes and keep is not None  # which saves again
        state = contents(loop, store.memory() if by_rule else Memory())
        if writes:
            entry = Checkpoint(loop.n_updates, "", loop.state_metrics(), pinned=keep is None)
            store.save(
                state,
                entry,
                keep or Keep(),
                background=background,
                written=partial(_note, loop.run),
            )

    def save_again(self) -> str:
        """Save permanently in the last location that was used; return that location as text.

        Raises
        ------
        CheckpointError
            No place is known, or it cannot be written.
        """
        if not self._stores:
            raise CheckpointError(
                "no folder for checkpoints is known; loop.add(Checkpoints(folder)) before training "
                "names one"
            )
        name, store = [*self._stores.items()][-1]
        self._save(store, None, background=True)
        return f"checkpoint of step {self._loop.n_updates} in {name}"

    def amend(self, location: Location, keep: Keep) -> None:
        """Add metrics found since the state was saved, and apply the retention rule again."""
        if own_rank()[0] == 0:
            self.store(location).amend(self._loop.n_updates, self._loop.state_metrics(), keep)

    def load(
        self,
        location: Location,
        step: int | None = None,
        to_restore: Wanted = None,
        renames: Mapping[str, str] | None = None,
        strict: bool = True,
    ) -> Checkpoint:
        """Load the last checkpoint, or the one of a step."""
        path = local_path(location)
        name = ""
        if path is not None and path.is_file():
            location, name = path.parent, path.name
        store = self.store(location)
        # A state that is still being written would not be found.
        self.wait()
        found = _chosen(store, step, name)
        self._restore(store, found, to_restore, renames, strict)
        return found

    def before(self, step: int) -> Checkpoint:
        """Return the newest state at or before a step in this training's history.

        Raises
        ------
        CheckpointError
            There is none.
        """
        return self._before(step)[0]

    def check_before(self, step: int) -> Checkpoint:
        """Raise CheckpointError where `load_before` would: there is none, or it does not fit."""
        found, store = self._before(step)
        check(self._loop, store.read(found.name), found.path)
        return found

    def load_before(self, step: int) -> Checkpoint:
        """Load the newest state at or before a step."""
        found, store = self._before(step)
        self._restore(store, found)
        return found

    def _before(self, step: int) -> tuple[Checkpoint, CheckpointStore]:
        self.wait()
        found = [(store.before(step), store) for store in self._stores.values()]
        known = [(one, store) for one, store in found if one is not None]
        if not known:
            steps = ", ".join(map(str, sorted({one.step for one in self.saved()}))) or "none"
            raise CheckpointError(
                f"no checkpoint at or before step {step} of those that this training went "
                f"through; there are: {steps}; loop.add(Checkpoints(folder)) before training makes "
                f"some, loop.load_checkpoint(folder) finds those of an earlier process"
            )
        return max(known, key=lambda pair: pair[0].step)

    def saved(self) -> list[Checkpoint]:
        """All there are, place by place, in the order in which they were saved."""
        return [one for store in self._stores.values() for one in store.saved()]

    def wait(self) -> None:
        """Wait until all is written."""
        for store in self._stores.values():
            store.wait()

    def _restore(self, store: CheckpointStore, found: Checkpoint, *options: Any) -> None:
        # Weights alone may come from any step; a whole state must be at the step of the record.
        if not options or options[0] is None:
            _check_step(self._loop, found)
        differences = restore(self._loop, store.read(found.name), found.path, *options)
        weights_alone = bool(differences) or (bool(options) and options[0] is not None)
        if differences:
            warnings.warn(f"{found.path}: not loaded, so unchanged: {differences}", stacklevel=4)
        if not weights_alone:
            # What is saved from here on follows this state, in every folder: later ones are another
            # history.
            for other in self._stores.values():
                other.leave(found if other is store else None, found.step)


def _chosen(store: CheckpointStore, step: int | None, name: str) -> Checkpoint:
    saved = store.saved()
    if name:
        own = [one for one in saved if one.name == name]
        return own[-1] if own else Checkpoint(-1, f"{store.place.name}/{name}", line=0)
    wanted = [one for one in saved if step is None or one.step == step]
    if not wanted:
        steps = ", ".join(dict.fromkeys(str(one.step) for one in saved)) or "none"
        which = "" if step is None else f" of step {step}"
        raise CheckpointError(f"no checkpoint{which} in {store.place.name}; there are: {steps}")
    return wanted[-1]


def _check_step(loop: SavedTraining, found: Checkpoint) -> None:
    """Check that an open run is at the step of the checkpoint."""
    run = loop.run
    step = None if run is None or run.closed else run.controls.status_head().step
    if run is not None and step not in (None, found.step):
        raise CheckpointError(
            f"the run {run.name!r} is at step {step}, the checkpoint at step {found.step}; close "
            f"the run, load, and loop.watch(store=...) continues it"
        )


def _note(run: Run | None, entry: Checkpoint, nbytes: int) -> None:
    """Report a written checkpoint to the run, if it is still open."""
    if run is not None and not run.closed:
        loss = entry.metrics.get("loss")
        known = None if loss is None else json_number(loss)
        # This comes from the thread that writes, and the run may be closed meanwhile.
        with suppress(ClosedRunError):
            run.controls.checkpoint_saved(entry.step, entry.path, nbytes, known)
