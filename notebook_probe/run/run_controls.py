"""Controls of a live run for the loops and collectors of this package."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, SupportsFloat, TypeVar

from torch import nn
from torch.optim import Optimizer

from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.numbers import read_scalars
from notebook_probe.record.format.notes import (
    CHECKPOINT,
    CONFIG,
    LINEAGE,
    MOST_LINEAGE_BYTES,
    read_notes,
    written_notes,
)
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.attach.attachment import denser
from notebook_probe.run.attach.requests import Control, Set
from notebook_probe.run.breakpoints.conditions import AtStep
from notebook_probe.run.ending import Life
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.run.going_back.way_back import CanGoBack
from notebook_probe.run.mirror.mirror import RunReader
from notebook_probe.run.output.kept_output import KeptOutput
from notebook_probe.run.panel_controls import PanelControls
from notebook_probe.run.parts import RunParts
from notebook_probe.run.settings.settings import Settings
from notebook_probe.schedules import ScheduleLike

__all__ = ["RunControls"]

R = TypeVar("R", bound=RunReader)


class RunControls(PanelControls):
    """`Controls` of a live run for a panel, and the methods that loops and collectors need.

    Users have the methods of `Run`; these are ``run.controls``, for the code of a panel, a loop or
    a collector.

    Parameters
    ----------
    name : str
    parts : RunParts
    life : Life
    fresh : bool
        The record is in a generated folder.
    """

    def __init__(self, name: str, parts: RunParts, life: Life, fresh: bool) -> None:
        super().__init__(name, parts, life)
        self._is_fresh = fresh
        self.options: Mapping[str, Any] = MappingProxyType({})
        """Arguments of `watch`, except for probes and store."""
        self.given_config: Mapping[str, Any] = MappingProxyType({})
        """The ``config`` of `watch`."""

    # ---------------------------------------------------------------- for loops and collectors

    @property
    def open_step(self) -> int:
        """Number of the step that is trained now or was trained last; a forward begins the next."""
        return self._parts.gate.step

    @property
    def is_shown(self) -> bool:
        """A panel of this process shows the run."""
        return self._live.gate.is_followed

    @property
    def model(self) -> nn.Module:
        """The model that is watched, which a run holds weakly."""
        return self._live.probes.model

    @property
    def optimizers(self) -> list[Optimizer]:
        """Known optimizers of the model's parameters."""
        return self._live.observer.updates.optimizers

    @property
    def end_step(self) -> int:
        """The record's step when training ends, as set by `Run.expect`; -1 if unknown."""
        return self._live.state.end_step

    @property
    def kept_batch(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Arguments and keywords of the batch that `Run.probe_batch` has kept; None without one."""
        return self._live.kept_batch

    @property
    def settings(self) -> Settings:
        """All settings, for loops that train steps again; also after the run is closed."""
        return self._parts.settings

    @property
    def wanted_probes(self) -> list[Probe]:
        """Wanted measurements, as probes."""
        return self._parts.probes.wanted

    def watches(self, model: nn.Module) -> bool:
        """Return whether this is the watched model, without wrappers."""
        return self._parts.probes.watches(model)

    def is_replaced_by(self, model: nn.Module) -> bool:
        """Return whether watching ``model``, also into a new folder, replaces this run."""
        return self._is_fresh and self.watches(model)

    def each_step(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call ``callback(step)`` on the training thread before each step; returns its removal.

        The step before is recorded by then, and none is open.
        """
        return self._live.gate.each_step(callback)

    def each_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` before the run is closed by its user; returns its removal."""
        return self._live.gate.each_end(callback)

    def log_of(self, collector: object, values: Mapping[str, SupportsFloat]) -> None:
        """Record scalars of a collector at the step that `Run.log` records at.

        If another writer already has the name, the series is called ``loss_2``, with one warning.
        Another collector may have the name when this one is gone.

        Parameters
        ----------
        collector : object
            Referenced weakly.
        values : mapping

        Raises
        ------
        QuantityError
            Same as in `Run.log`.
        """
        live = self._live
        checked, on_device = read_scalars("log", dict(values))
        live.loop_log.log(checked, on_device, "training", collector)

    def reschedule(self, probes: Sequence[Probe], quantity: str, schedule: ScheduleLike) -> int:
        """Measure these probes, or those of one quantity, on another schedule; see `Handle`."""
        live = self._live
        moved = live.probes.reschedule_probes(probes, quantity, schedule)
        live.change_between_steps()
        return moved

    def checkpoint_saved(
        self, step: int, path: str, nbytes: int, loss: float | None = None
    ) -> None:
        """Note that the training can go back to a step: an event of kind ``"checkpoint"``.

        `notebook_probe.train` reports it; your own loop may. The panel has a history of them below
        its heat map.

        Parameters
        ----------
        step : int
            Updates completed at the state that was saved.
        path : str
        nbytes : int
        loss : float, optional
            Loss of the state.

        Raises
        ------
        ClosedRunError

        Examples
        --------
        >>> run.controls.checkpoint_saved(500, "checkpoints/500.pt", 314_000)  # doctest: +SKIP
        """
        detail = {"step": int(step), "bytes": int(nbytes), "path": str(path), "loss": loss}
        text = f"checkpoint of step {step}"
        self._live.writer.event(step, CHECKPOINT, text, json.dumps(detail))

    @property
    def output(self) -> KeptOutput:
        """The last lines that were printed, if the run keeps them."""
        return self._live.output

    def accompany(self, begin: Callable[[RunParts], R]) -> R:
        """Begin a reader of the run, which ends with it; the status shows its problem."""
        parts = self._live
        reader = begin(parts)
        parts.mirrors.keep(reader)
        return reader

    def loop_raised(self, error: BaseException) -> None:
        """Report that an exception is about to end the loop, on the training thread.

        If ``pause_when(error=True)`` is armed, training pauses here, and its state is kept for
        inspection; raise the exception afterwards. An interrupt and Stop are no errors.

        Examples
        --------
        >>> try:  # doctest: +SKIP
        ...     train()
        ... except Exception as error:
        ...     run.controls.loop_raised(error)
        ...     raise
        """
        self._live.loop_raised(error)

    def keep_config(self, config: Mapping[str, Any]) -> None:
        """Store the configuration that a trainer has; the entries given to `watch` count first.

        An entry that another value replaces, such as one of the training before, is in an event.

        Raises
        ------
        ValueError, ClosedRunError
            Same as in `keep_lineage`.
        """
        writer = self._live.writer
        before, now = read_notes(writer.attrs, CONFIG), {**config, **self.given_config}
        text = written_notes(CONFIG, now)
        if any(now.get(name) != value for name, value in before.items()):
            writer.event(self.open_step, CONFIG, "the config was changed", json.dumps(before))
        writer.annotate(**{CONFIG: text})

    def keep_lineage(self, **parts: Mapping[str, Any]) -> None:
        """Store parts of the run's provenance; a part with the same name is replaced.

        A `notebook_probe.summary` collector calls this.

        Parameters
        ----------
        **parts : dict of text, numbers, bools, None, or lists and dicts of these
            ``train``, ``eval``, ``custom``, ``device``, or others; `Run.lineage` gives them back.

        Raises
        ------
        ValueError
            For anything else.
        ClosedRunError

        Examples
        --------
        >>> run.controls.keep_lineage(custom={"trial": 7})  # doctest: +SKIP
        """
        self._add_notes(LINEAGE, parts, MOST_LINEAGE_BYTES)

    # ---------------------------------------------------------------- going back

    def offer_way_back(self, loop: CanGoBack) -> None:
        """Offer in the panel to go back; called by `notebook_probe.train.Loop`."""
        self._live.way_back.by(loop)

    def train_in_background(self, function: Callable[[], Any]) -> None:
        """Train in a thread of this run, also after it was closed: a branch takes it over."""
        self._parts.train_in_background(function)

    def continue_branch(self, before: RunControls, parent: RunSource) -> None:
        """Continue with the thread that trains ``before``, the controls of ``parent``."""
        live, left = self._live, before._parts
        left.way_back.leave_loop()
        self._parent, before._parent = parent, None  # which holds no older one
        self._knows_parent = before._knows_parent = True
        background = left.state.background
        if background is not None and background.running:
            left.gate.reached.reach(live.gate.step)
            live.gate.reached = left.gate.reached
            live.state.background, left.state.background = background, None
            stop = partial(live.put, Control("stop"))
            background.goes_on(live.end_loop, stop, live.loop_raised)

    def copy_requests(self, before: RunControls) -> None:
        """Attach the same probes, breakpoints and rules as ``before``."""
        live, left = self._live, before._parts
        for attachment in left.probes.attachments:
            live.probes.attach(attachment.resolver)
        wanted = {probe.key() for probe in left.probes.wanted}
        live.probes.detach([one for one in live.probes.wanted if one.key() not in wanted])
        if left.output.was_on:
            live.output.begin()
        for info in left.breakpoints.infos():
            live.breakpoints.edit(live.breakpoints.add(info.condition).id, armed=info.armed)
        for name in {*left.rules, *live.rules}:
            if name not in left.rules:
                del live.rules[name]
            elif left.rules[name] != live.rules.get(name):
                live.rules[name] = left.rules[name]

    def begin_branch(self, request: GoBack) -> None:
        """Apply the requested changes at the first step of the branch."""
        live = self._live
        attachment = denser(request, live.probes.model_map)
        if attachment is not None:
            live.probes.add(attachment)
        if request.rate is not None:
            live.put(Set("lr", request.rate))
        if request.pause_at is not None:
            live.breakpoints.add(AtStep(request.pause_at))
        live.change_between_steps()
