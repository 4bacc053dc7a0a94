"""The collector's part in a loss landscape: snapshots, and what is drawn while it trains."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from notebook_probe.errors import UnreadableError
from notebook_probe.summary.landscape.dataset import is_whole, saved
from notebook_probe.summary.landscape.draw import Which, drawn, name_of
from notebook_probe.summary.landscape.mean_loss import MeanLoss, kept_batches
from notebook_probe.summary.landscape.recorded import KIND, as_detail, series_name
from notebook_probe.summary.landscape.settings import LandscapeSettings
from notebook_probe.summary.landscape.snapshot import ModelSnapshot
from notebook_probe.summary.landscape.stored import StoredSnapshots
from notebook_probe.summary.landscape.writing import SnapshotWriter
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.settings import CollectorSettings

__all__ = ["LandscapeItem"]

DATA: tuple[str, ...] = ("batches", "loss_fn")
"""Names of the inputs that a landscape needs during training."""


@dataclass(frozen=True, slots=True, eq=False)
class _LandscapeInputs:
    """Inputs for drawing a landscape during training."""

    batches: Iterable[Any]
    loss_fn: Callable[[Any, Any], Tensor]


class LandscapeItem(Item):
    """Store snapshots after the units of each interval; draw landscapes if data is given.

    Parameters
    ----------
    settings : CollectorSettings
    own : LandscapeSettings
    given : _LandscapeInputs, optional
        Without it, use ``nbp.landscape`` to draw them afterwards.
    """

    name = "collect_landscape"

    def __init__(
        self,
        settings: CollectorSettings,
        own: LandscapeSettings,
        given: _LandscapeInputs | None = None,
    ) -> None:
        super().__init__()
        self._own, self._given = own, given
        self._folder = settings.summary_dir
        self._writer = SnapshotWriter(settings.summary_dir, own)
        # An event, as another thread may cancel while this one draws.
        self._cancelled = threading.Event()

    @classmethod
    def read(cls, settings: CollectorSettings) -> LandscapeItem | None:
        """Return the item, if it is switched on.

        Raises
        ------
        TypeError, ValueError
            Invalid settings of a landscape.
        """
        if settings.landscape is None:
            return None
        rest = {**settings.landscape}
        data = {name: rest.pop(name) for name in DATA if name in rest}
        return cls(settings, LandscapeSettings.of(rest), _read(data) if data else None)

    def cancel(self) -> None:
        """Draw nothing more, from any thread: what is being drawn ends at its next point."""
        self._cancelled.set()

    def start(self, moment: Moment) -> None:
        if self._own.unit == "epoch" and moment.loop is None:
            raise ValueError(
                "unit='epoch' of a landscape needs a Loop, which knows where epochs end; in a "
                "loop of your own count steps"
            )
        done = self._units_before(moment)
        self._writer.begin(moment.model, done)
        if done < self._own.units[-1]:
            moment.run.note(KIND, self._writer.cost(moment.model))

    def awaits(self, step: int) -> bool:
        return self._own.unit == "step" and self._writer.wants(step + 1)

    def stepped(self, moment: Moment) -> None:
        if self._own.unit == "step":
            self._reached(moment, moment.step + 1)

    def epoch_ended(self, moment: Moment) -> None:
        if self._own.unit == "epoch" and moment.loop is not None:
            self._reached(moment, moment.loop.epoch)

    def end(self, moment: Moment) -> None:
        data = moment.data
        self._writer.end(None if data is None else data.length)

    def _units_before(self, moment: Moment) -> int:
        return moment.step if self._own.unit == "step" or moment.loop is None else moment.loop.epoch

    def _reached(self, moment: Moment, unit: int) -> None:
        if not self._writer.wants(unit):
            return
        self._writer.take(moment.model, unit, _number(moment.loss))
        if self._given is not None:
            self._draw(moment, unit, self._given)

    def _draw(self, moment: Moment, unit: int, given: _LandscapeInputs) -> None:
        """Draw the landscapes that are complete with this unit."""
        ended = [interval for interval in self._own.intervals if interval[-1] == unit]
        if not ended:
            return
        # The last snapshot is still being written by a thread.
        self._writer.wait()
        stored = StoredSnapshots.at(self._folder)
        batches = kept_batches(given.batches, given.loss_fn, self._own.num_samples)
        loss = MeanLoss(moment.model, batches)
        if self._own.create_train:
            for interval in ended:
                self._record(moment, stored, "train", [stored.read(one) for one in interval], loss)
        if self._own.create_result and self._own.intervals[-1] in ended:
            self._record(moment, stored, "result", [stored.read(unit)], loss)

    def _record(
        self,
        moment: Moment,
        stored: StoredSnapshots,
        which: Which,
        path: list[ModelSnapshot],
        loss: MeanLoss,
    ) -> None:
        name = name_of(which, path)
        try:
            found = drawn(path, self._own, loss, which, is_cancelled=lambda: self._ends(moment))
        except UnreadableError as error:  # it has no plane; another interval may have one
            moment.run.note(KIND, f"{name}: {error}")
            return
        if not is_whole(found):
            moment.run.note(KIND, f"{name}: cancelled")
            return
        saved(found, stored.folder, name)
        if moment.log_array(series_name(which), torch.from_numpy(found.loss.values)):
            moment.run.note(KIND, f"{name} is drawn", **as_detail(found))

    def _ends(self, moment: Moment) -> bool:
        """Return whether this drawing, or the training, was canceled."""
        return self._cancelled.is_set() or bool(moment.loop and moment.loop.stop_reason)


def _read(given: dict[str, Any]) -> _LandscapeInputs:
    if given.keys() != {*DATA}:
        raise ValueError(
            "collect_landscape: to draw while it trains, both batches and loss_fn are needed; "
            "without them nbp.landscape draws afterwards"
        )
    batches, loss_fn = given["batches"], given["loss_fn"]
    if not isinstance(batches, Iterable):
        raise TypeError(f"batches={batches!r}: an iterable of (inputs, targets) is expected")
    # Each point of the landscape goes through the batches again.
    if iter(batches) is batches:
        raise TypeError("batches: an iterator can be gone through once; a list can be again")
    if not callable(loss_fn):
        raise TypeError(f"loss_fn={loss_fn!r}: a function (outputs, targets) is expected")
    return _LandscapeInputs(batches, loss_fn)


def _number(loss: Any) -> float | None:
    """Return a loss that is on the host; one on a device is not waited for."""
    if isinstance(loss, Tensor):
        known = loss.numel() == 1 and loss.device.type == "cpu" and not loss.is_complex()
        return float(loss.detach()) if known else None
    return float(loss) if isinstance(loss, int | float) else None
