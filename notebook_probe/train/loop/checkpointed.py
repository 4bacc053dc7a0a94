"""What a loop keeps of itself to go on from later."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import cast

from notebook_probe.record.store.location import Location
from notebook_probe.train.checkpoints.contents import Training
from notebook_probe.train.checkpoints.fitting import Wanted
from notebook_probe.train.checkpoints.index import Checkpoint
from notebook_probe.train.checkpoints.kept import Kept
from notebook_probe.train.loop.recorded import Recorded
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["Checkpointed"]


class Checkpointed(Recorded):
    """Saves all that a training needs to go on, and loads it.

    Attributes
    ----------
    kept : Kept
        What is saved, and where.
    """

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(trainer)
        self.kept = Kept(cast(Training, self))

    def save_checkpoint(self, folder: Location, *, background: bool = False) -> None:
        """Save the state that the training is in, between two steps or in a hook, for good.

        What goes on from it is equal to what had never stopped, bit for bit. It holds the model,
        optimizer, scheduler, scaler, metrics, random generators, where the loop is in its data,
        the newest metrics, the place and step of the record, and whatever `register_state` was
        given. Inside `on_step` it is of the state after that step. Of several processes every one
        calls it, and the first one writes.

        Parameters
        ----------
        folder : path, URL, zarr Store or RemoteStore
        background : bool
            Have a thread write the copies; the next save waits for it and raises its error.

        Raises
        ------
        CheckpointError
            It cannot be written, or something in it could be read back only by running code.
        """
        self.kept.save(folder, background=background)

    def load_checkpoint(
        self,
        folder: Location,
        step: int | None = None,
        *,
        to_restore: Wanted = None,
        renames: Mapping[str, str] | None = None,
        strict: bool = True,
    ) -> Checkpoint:
        """Go on from a checkpoint: from the next run of the loop on all is as it was.

        Nothing of the file is run as code. `watch` with the ``store`` of the record then goes on
        with it at the step of the checkpoint.

        Parameters
        ----------
        folder : path, URL, zarr Store or RemoteStore
            One file of it is meant, too.
        step : int, optional
            Of which state; by default the one that was saved last.
        to_restore : names, compiled regex or callable, optional
            Load these weights alone, by their names in the checkpoint, and leave the rest as it
            is: optimizer, counters, generators.
        renames : dict of str to str, optional
            Names in the checkpoint to names in the model.
        strict : bool
            False loads the weights that fit when not all do, and warns of the others; all else is
            left as it is then.

        Raises
        ------
        CheckpointError
            There is none, it cannot be read, or does not fit: missing, extra, and of other shapes
            at once. Nothing has been changed then.
        ValueError
            For a name that nobody knows.
        RuntimeError
            The loop runs.
        """
        self._check_idle()
        return self.kept.load(folder, step, to_restore, renames, strict)

    def begin_at(self, step: int) -> None:
        """Count on from so many updates, of a training of which weights alone were taken.

        A scheduler is stepped as often; data and generators begin as they are.

        Raises
        ------
        ValueError
            Updates have been counted already.
        RuntimeError
            The loop runs.
        """
        self._check_idle()
        if self.loop_step:
            raise ValueError(f"begin_at({step}): the loop is at step {self.loop_step} already")
        self.loop_step = self.trainer.global_step = step
        self.trainer.optimizer._opt_called = True  # type: ignore[attr-defined]  # or it warns
        if self.trainer.scheduler is not None:
            for _ in range(step):
                self.trainer.scheduler.step()

    @abstractmethod
    def _check_idle(self) -> None:
        """Raise RuntimeError while the loop runs."""

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Those in every folder that this loop has saved to or loaded from: step, path, metrics."""
        return self.kept.saved()
