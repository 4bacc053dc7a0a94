"""accelerate: ``Accelerator(log_with=WatchTracker(model))``, or ``log_with="notebook_probe"``.

Importing this module makes the word known to accelerate; ``nbp run`` does so by itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any, Generic, TypeVar, cast

from torch import nn

from notebook_probe.errors import RecordWarning
from notebook_probe.probes.step.probe import PhaseName
from notebook_probe.run.begin.earlier import last_run
from notebook_probe.run.run import Run
from notebook_probe.train.frameworks.configuration import recordable
from notebook_probe.train.frameworks.needs import needs
from notebook_probe.train.frameworks.watched import Watched, harmless

with needs("accelerate"):
    # Its modules, as accelerate itself may be halfway through its import.
    from accelerate import tracking
    from accelerate.state import PartialState
    from accelerate.tracking import GeneralTracker

__all__ = ["ReportTracker", "WatchTracker"]

Batch = TypeVar("Batch")


class WatchTracker(GeneralTracker):
    """Records what ``accelerator.log`` is given; the loop is yours, and so are its batches.

    Parameters
    ----------
    watched : Run or nn.Module, optional
        A run, or a model, before or after ``prepare``, which ``init_trackers`` watches. By default
        the run that began last in this process, that of `notebook_probe.watch` or of ``nbp run``,
        when something is logged.
    **options
        Options of `notebook_probe.watch`; with ``rank=None`` only the main process records.

    Attributes
    ----------
    run : Run or None
        None before ``init_trackers``; ``accelerator.get_tracker("notebook_probe")`` has it too.

    Examples
    --------
    >>> tracker = WatchTracker(model)  # doctest: +SKIP
    >>> accelerator = Accelerator(log_with=tracker)  # doctest: +SKIP
    >>> accelerator.init_trackers("digits", config=vars(args))  # doctest: +SKIP
    """

    name = "notebook_probe"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, watched: Run | nn.Module | None = None, **options: Any) -> None:
        super().__init__()
        self._looks_for_a_run = watched is None
        self._model = watched if isinstance(watched, nn.Module) else None
        self._watched = Watched(None if isinstance(watched, nn.Module) else watched, options)
        self._n_epochs = 0

    @property
    def run(self) -> Run | None:
        if self._looks_for_a_run and (found := last_run()) is not None:
            self._looks_for_a_run = False
            self._watched.join(found)
        return self._watched.run

    @property
    def tracker(self) -> Run | None:
        """Run under accelerate's name."""
        return self.run

    def start(self) -> None:
        """Begin to watch; called by ``init_trackers``."""
        if self._model is not None:
            self._watched.begin(self._model, is_main=PartialState().is_main_process)
            self._model = None  # a run holds it weakly

    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Keep the ``config`` of ``init_trackers`` in ``run.config`` and ``run.annotations``."""
        with harmless("the configuration is not recorded"):
            self._watched.configure(values)
            if self._watched.is_recording and self.run is not None:
                self.run.annotate(config=recordable(values))

    def log(
        self,
        values: Mapping[str, Any],
        step: int | None = None,
        phase: PhaseName = "training",
        **_: Any,
    ) -> None:
        """Record numbers of the step trained last, or with ``phase="eval"`` of the state.

        The run counts the steps itself. accelerate hands a phase on in its ``log_kwargs``:
        ``accelerator.log(values, log_kwargs={"notebook_probe": {"phase": "eval"}})``.
        """
        if self.run is None and self._looks_for_a_run:
            self._looks_for_a_run = False
            text = "nothing is recorded: call notebook_probe.watch(model) before the training"
            warnings.warn(text, RecordWarning, stacklevel=3)
        if phase == "eval":
            self._watched.evaluated(values)
        else:
            self._watched.trained(values)

    def batches(self, loader: Iterable[Batch]) -> TrackedBatches[Batch]:
        """Return the batches, for one epoch at a time: Pause, Step and Stop act before each.

        After the last batch of an epoch they wait for the next epoch, so that what is logged of
        this one comes first. Stop raises `TrainingStopped`. The waiting is measured.

        Examples
        --------
        >>> for inputs, targets in tracker.batches(loader):  # doctest: +SKIP
        ...     train(inputs, targets)
        """
        return TrackedBatches(loader, self)

    def finish(self) -> None:
        """End the training; called by ``end_training``."""
        self._watched.ended()

    def _begin_epoch(self, loader: Iterable[Batch]) -> Iterable[Batch]:
        self._watched.expects(self._n_epochs)
        self._n_epochs += 1
        run = self.run
        return loader if run is None or run.closed else run.batches(loader)


class ReportTracker(WatchTracker):
    """The tracker of ``Accelerator(log_with="notebook_probe")``.

    Parameters
    ----------
    project : str
        Name that ``init_trackers`` was given; kept in ``run.config``.
    watched : Run or nn.Module, optional
        Same as in `WatchTracker`, and so are options: ``init_kwargs={"notebook_probe": {...}}``.

    Examples
    --------
    >>> import notebook_probe.train.frameworks.accelerate  # doctest: +SKIP
    >>> accelerator = Accelerator(log_with="notebook_probe")  # doctest: +SKIP
    >>> accelerator.init_trackers("digits", config=vars(args))  # doctest: +SKIP
    """

    def __init__(
        self, project: str, watched: Run | nn.Module | None = None, **options: Any
    ) -> None:
        super().__init__(watched, **options)
        self._watched.configure({"project": project})


class TrackedBatches(Generic[Batch]):
    """A loader with a boundary before each of its batches; each time through it is an epoch."""

    def __init__(self, loader: Iterable[Batch], tracker: WatchTracker) -> None:
        self._loader, self._tracker = loader, tracker

    def __len__(self) -> int:
        return len(cast(Sized, self._loader))

    def __iter__(self) -> Iterator[Batch]:
        batches = iter(self._tracker._begin_epoch(self._loader))
        end = len(self) if isinstance(self._loader, Sized) else None
        n_drawn = 0
        while True:
            if n_drawn != end:
                self._tracker._watched.boundary()
            try:
                batch = next(batches)
            except StopIteration:
                return
            n_drawn += 1
            yield batch


def _register() -> None:
    """Make the word known, to a version of accelerate that takes trackers of others by a word."""
    if hasattr(tracking, "register_tracker_class"):
        tracking.register_tracker_class(ReportTracker)


_register()
