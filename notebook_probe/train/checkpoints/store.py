"""The checkpoints of one place: saving in the background, listing, removing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import IO, Any, TypeAlias

import torch

from notebook_probe.errors import CheckpointError
from notebook_probe.record.store.location import Location
from notebook_probe.train.checkpoints.index import NAME, Checkpoint, CheckpointIndex
from notebook_probe.train.checkpoints.keeping import Keep
from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.places import place_at, read_state
from notebook_probe.uninterrupted import join

__all__ = ["CheckpointStore"]


Written: TypeAlias = Callable[[Checkpoint, int], None]
"""Callback with each written checkpoint and its bytes."""


class CheckpointStore:
    """Storage of one training's checkpoints in one location.

    Parameters
    ----------
    location : path, URL, zarr Store or RemoteStore

    Raises
    ------
    CheckpointError
        The place cannot hold checkpoints.
    """

    def __init__(self, location: Location) -> None:
        self.place = place_at(location)
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._memory = Memory()
        self._line = 0  # none yet
        self._leaves = (0, 0)

    # ---------------------------------------------------------------- saving

    def save(
        self,
        state: dict[str, Any],
        entry: Checkpoint,
        keep: Keep,
        *,
        background: bool,
        written: Written = lambda entry, nbytes: None,
    ) -> None:
        """Write copies, once earlier ones are written; ``written`` is called with each.

        Raises
        ------
        CheckpointError
            They could not be written; of a save in the background the next one raises it.
        """
        self.wait()
        write = partial(self._saved, state, entry, keep, written)
        if background:
            self._thread = threading.Thread(target=write, name="notebook-probe-checkpoint")
            self._thread.start()
        else:
            write()
            self.wait()

    def amend(self, step: int, metrics: Mapping[str, float], keep: Keep) -> None:
        """Add metrics to a saved state; do nothing if it was not saved.

        Raises
        ------
        CheckpointError
            The index could not be written.
        """
        found = self.before(step)
        self.wait()
        if found is None or found.step != step:
            return
        try:
            index = self._index().amended(found, metrics)
            self._write_index(index)
            self._prune(index, keep)
        except Exception as error:
            raise CheckpointError(
                f"{self.place.name} cannot be written: {type(error).__name__}: {error}"
            ) from error

    def begin(self) -> None:
        """See that the place can be written.

        Raises
        ------
        CheckpointError
            The place cannot be written.
        """
        self.wait()
        try:
            self._write_index(self._index())
        except Exception as error:
            raise CheckpointError(
                f"{self.place.name} cannot be written: {type(error).__name__}: {error}"
            ) from error

    def memory(self) -> Memory:
        """Return the memory for the next state, once the previous one is written."""
        self._join()
        self._memory.take_back()
        return self._memory

    def end(self) -> None:
        """Wait until all is written, and hold no memory: no other save follows for now.

        Raises
        ------
        CheckpointError
            The state could not be written.
        """
        self._join()
        self._memory.release()
        self.wait()

    def wait(self) -> None:
        """Wait until all is written.

        Raises
        ------
        CheckpointError
            The state could not be written.
        """
        self._join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def leave(self, at: Checkpoint | None, step: int) -> None:
        """Continue from an earlier state: later checkpoints start a new line."""
        self._leaves = (self._line if at is None else at.line, step)
        self._line = 0

    def _join(self) -> None:
        if self._thread is not None:
            join(self._thread)
            self._thread = None

    def _saved(
        self, state: dict[str, Any], entry: Checkpoint, keep: Keep, written: Written
    ) -> None:
        try:
            written(*self._write(state, entry, keep))
        except Exception as error:
            self._error = CheckpointError(
                f"the checkpoint of step {entry.step} was not written to {self.place.name}: "
                f"{type(error).__name__}: {error}; earlier ones are unchanged"
            )
            self._error.__cause__ = error

    def _write(
        self, state: dict[str, Any], entry: Checkpoint, keep: Keep
    ) -> tuple[Checkpoint, int]:
        """Return the entry with its location, and its bytes."""
        sizes = [0]

        def fill(file: IO[bytes]) -> None:
            torch.save(state, file)
            sizes.append(file.tell())

        # Read each time, as files may have been deleted by hand.
        index = self._index()
        if not self._line:
            index = index.begun(*self._leaves)
            self._line = len(index.lines)
        name = self._free_name(index, entry.step)
        path = f"{self.place.name}/{name}"
        entry = replace(entry, path=path, line=self._line, saved_at=time.time())
        index = index.added(entry)
        # The list first: a crash in between leaves an entry without a file, which reading drops.
        self._write_index(index)
        self.place.write(name, fill)
        # Only now that the new one is complete, others may go.
        self._prune(index, keep)
        return entry, sizes[-1]

    def _prune(self, index: CheckpointIndex, keep: Keep) -> None:
        gone = keep.gone(index.entries)
        for one in gone:
            # Files first, for the same reason as in saving.
            self.place.delete(one.name)
        if gone:
            self._write_index(index.without(gone))

    def _free_name(self, index: CheckpointIndex, step: int) -> str:
        """Return a name for a state; an existing file is replaced only if of the same state."""
        taken = self.place.names()
        own = [one.name for one in index.entries if (one.step, one.line) == (step, self._line)]
        base, n = f"step_{step:08d}", 1
        name = own[0] if own else f"{base}.pt"
        while name in taken and name not in own:
            n += 1
            name = f"{base}-{n}.pt"
        return name

    def _write_index(self, index: CheckpointIndex) -> None:
        text = index.text()
        self.place.write(NAME, lambda file: file.write(text))

    # ---------------------------------------------------------------- reading

    def saved(self) -> list[Checkpoint]:
        """Return all checkpoints in the order in which they were saved, including pending ones."""
        if self._thread is not None:
            join(self._thread)
        return list(self._index().entries)

    def last_line(self) -> list[Checkpoint]:
        """Return the history of the last saved checkpoint, and itself, by step."""
        index = self._index()
        if not index.entries:
            return []
        last = index.entries[-1]
        return [one for one in index.of_line(last.line) if one.step <= last.step]

    def before(self, step: int) -> Checkpoint | None:
        """Return the newest checkpoint at or before a step in this training's history."""
        if self._thread is not None:
            join(self._thread)
        index = self._index()
        line, most = (
            (self._line, step) if self._line else (self._leaves[0], min(step, self._leaves[1]))
        )
        own = [one for one in index.of_line(line) if one.step <= most]
        return own[-1] if own else None

    def read(self, name: str) -> dict[str, Any]:
        """Read one checkpoint."""
        return read_state(self.place, name)

    def _index(self) -> CheckpointIndex:
        return CheckpointIndex.parsed(self.place.read(NAME), self.place.name, self.place.names())
