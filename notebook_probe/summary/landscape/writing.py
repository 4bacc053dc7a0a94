"""Snapshots written while a model trains, by a separate thread."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from notebook_probe.errors import CheckpointError, RecordWarning
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.summary.landscape.metadata import FOLDER, NAME, Metadata
from notebook_probe.summary.landscape.settings import LandscapeSettings
from notebook_probe.summary.landscape.snapshot import ModelSnapshot
from notebook_probe.train.checkpoints.memory import Memory
from notebook_probe.train.checkpoints.places import place_at
from notebook_probe.train.checkpoints.ranks import own_rank
from notebook_probe.train.checkpoints.sharded import whole
from notebook_probe.uninterrupted import join

__all__ = ["SnapshotWriter"]


class SnapshotWriter:
    """Store the parameters of a model after some units, in ``<folder>/ckpt_dir``.

    They are copied between two steps, into the same memory each time, and written by a thread while
    training continues; the next one waits for it. A file is complete or missing, and the metadata
    next to it lists all that exist, so that a killed training can still be drawn. The first failed
    write is a warning, and the number of failures another at the end; each next one is tried.
    Nothing is deleted.

    Parameters
    ----------
    folder : path
    settings : LandscapeSettings
    """

    def __init__(self, folder: str | Path, settings: LandscapeSettings) -> None:
        self._place = place_at(Path(folder) / FOLDER)
        self._settings, self._units = settings, frozenset(settings.units)
        self._metadata: Metadata | None = None
        self._memory = Memory()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._n_failed = 0

    def begin(self, model: nn.Module, unit: int) -> None:
        """Start at ``unit`` units of a model's training; its own snapshots so far stay known."""
        fresh = Metadata(type(unwrap(model)).__name__, self._settings)
        self._metadata = fresh
        known = self._known() if unit else None
        if known and (known.network, known.settings.unit) == (fresh.network, fresh.settings.unit):
            there = known.up_to(unit)
            self._metadata = Metadata(
                fresh.network, self._settings, there.files, there.losses, known.steps_per_epoch
            )

    def wants(self, unit: int) -> bool:
        """Return whether the parameters after a unit are stored."""
        return unit in self._units

    def cost(self, model: nn.Module) -> str:
        """Describe the disk use of all snapshots, as text."""
        # Without a copy: only the size is asked.
        size = ModelSnapshot.of(unwrap(model), 0, copy=lambda value: value).nbytes
        n = len(self._units)
        each, total = f"{size / 1e6:.3g} MB", f"{n * size / 1e6:.3g} MB"
        return f"{n} snapshots of {each}, {total} in {self._place.name}"

    def take(self, model: nn.Module, unit: int, loss: float | None = None) -> None:
        """Store the present parameters of a model, after ``unit`` units.

        In a distributed training every process calls it, and the first one writes.
        """
        if self._metadata is None:
            self.begin(model, 0)
        # Each snapshot uses the same memory, so the one before must be written.
        self.wait()
        self._memory.take_back()
        taken = ModelSnapshot.of(unwrap(model), unit, self._copied)
        if own_rank()[0] == 0:
            self._thread = threading.Thread(
                target=self._write, args=(taken, loss), name="notebook-probe-snapshot"
            )
            self._thread.start()

    def end(self, steps_per_epoch: int | None = None) -> None:
        """Wait until all is written, and hold no memory: no other follows for now."""
        self.wait()
        self._memory.release()
        if self._metadata is not None and self._metadata.files and own_rank()[0] == 0:
            self._metadata = Metadata(
                self._metadata.network,
                self._settings,
                self._metadata.files,
                self._metadata.losses,
                steps_per_epoch,
            )
            self._attempt("the metadata", self._write_metadata)
            self.wait()
        self._say_how_many_failed()

    def wait(self) -> None:
        """Wait until all is written; warn about the first failure."""
        if self._thread is not None:
            join(self._thread)
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            self._n_failed += 1
            if self._n_failed == 1:
                warnings.warn(f"{error}; the next ones are tried", RecordWarning, stacklevel=3)

    def _say_how_many_failed(self) -> None:
        n, self._n_failed = self._n_failed, 0
        if n > 1:
            text = f"{n} files of the loss landscape were not written to {self._place.name}"
            warnings.warn(text, RecordWarning, stacklevel=3)

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """Numbers of the snapshots written in each interval."""
        self.wait()
        return [] if self._metadata is None else self._metadata.paths

    def _copied(self, value: Tensor) -> Tensor:
        return self._memory.copy(whole(value))

    def _write(self, taken: ModelSnapshot, loss: float | None) -> None:
        def write() -> None:
            assert self._metadata is not None
            name = self._metadata.name_of(taken.number)
            self._place.write(name, lambda file: torch.save(taken.state(), file))
            self._metadata = self._metadata.added(taken.number, loss)
            self._write_metadata()

        self._attempt(f"snapshot {taken.number}", write)

    def _write_metadata(self) -> None:
        assert self._metadata is not None
        text = self._metadata.text()
        self._place.write(NAME, lambda file: file.write(text))

    def _attempt(self, what: str, write: object) -> None:
        assert callable(write)
        try:
            write()
        except Exception as error:
            self._error = CheckpointError(
                f"{what} of the loss landscape was not written to {self._place.name}: "
                f"{type(error).__name__}: {error}"
            )

    def _known(self) -> Metadata | None:
        """Return the metadata of an earlier process; None if it cannot be read."""
        try:
            content = self._place.read(NAME)
            return None if content is None else Metadata.parsed(content, self._place.name)
        except (CheckpointError, OSError):
            return None
