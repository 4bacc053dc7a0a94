"""The summary collector of MindSpore, for our loop or the user's loop."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from notebook_probe.run.begin.earlier import run_of
from notebook_probe.run.run import Run
from notebook_probe.summary.collection import Course
from notebook_probe.summary.followed_run import FollowedRun
from notebook_probe.summary.items.table import ITEMS
from notebook_probe.summary.loop_outlook import LoopOutlook
from notebook_probe.summary.settings import CollectorSettings, Unit, whole_number
from notebook_probe.train.data.dataset import Dataset, as_dataset
from notebook_probe.train.loop.loop import Loop
from notebook_probe.train.metrics.averages import Value

__all__ = ["SummaryCollector"]


class SummaryCollector:
    """Collect the same as MindSpore's `SummaryCollector`, into the record of the watched model.

    It is a callback of a `Loop`: ``loop.add(SummaryCollector("summary"))``; at most one. In your
    own loop, `attach` follows a run. Data goes into the record of the run that watches the model;
    if there is no run, the collector watches the model, into ``<summary_dir>/record.zarr``.

    Data is due at the first unit and at every multiple of ``collect_freq``, counted
    from 1 over the whole training; tensors at multiples of ``collect_tensor_freq``.

    Parameters
    ----------
    summary_dir : str
        Folder for files outside the record; created if missing.
    collect_freq : int
    num_process : int
        Maximum number of threads that write files.
    collect_specified_data : dict, optional
        Items to collect, merged with the defaults: ``collect_metric``, ``collect_graph``,
        ``collect_train_lineage``, ``collect_eval_lineage``, ``collect_input_data`` and
        ``collect_dataset_graph``, each True by default; ``histogram_regular``, an expression that
        matches the start of parameters' names, None for the optimizer's first five parameters;
        ``collect_landscape``, a dict, or None to collect no landscape.
    keep_default_action : bool
        False to collect only the given keys.
    custom_lineage_data : dict of str to int, float or str, optional
        Values stored with the lineage of the training.
    collect_tensor_freq : int, optional
        Interval for tensors; by default at most 20 units of a training of known length.
    max_file_size : int, optional
        Bytes of values after which a stream ends, per stream.
    export_options : dict, optional
        ``{"tensor_format": "npy"}`` writes recorded tensors as files, too.
    unit : "step" or "epoch"
        Unit of the counts; an epoch is collected at its last step.

    Attributes
    ----------
    settings : CollectorSettings

    Raises
    ------
    TypeError, ValueError, NotADirectoryError
        An argument is invalid; the message says what was given, and what is allowed.

    Examples
    --------
    >>> collector = SummaryCollector("summary", collect_freq=5)  # doctest: +SKIP
    >>> loop.add(collector)  # doctest: +SKIP
    >>> loop.run_epochs(loader, 2)  # doctest: +SKIP
    >>> loop.explore()  # doctest: +SKIP
    """

    only_one = True
    priority = 0

    def __init__(
        self,
        summary_dir: str,
        collect_freq: int = 10,
        num_process: int = 32,
        collect_specified_data: Mapping[str, Any] | None = None,
        keep_default_action: bool = True,
        custom_lineage_data: Mapping[str, int | float | str] | None = None,
        collect_tensor_freq: int | None = None,
        max_file_size: int | None = None,
        export_options: Mapping[str, Any] | None = None,
        *,
        unit: Unit = "step",
    ) -> None:
        self.settings = CollectorSettings.read(
            summary_dir=summary_dir,
            collect_freq=collect_freq,
            num_process=num_process,
            collect_specified_data=collect_specified_data,
            keep_default_action=keep_default_action,
            custom_lineage_data=custom_lineage_data,
            collect_tensor_freq=collect_tensor_freq,
            max_file_size=max_file_size,
            export_options=export_options,
            unit=unit,
        )
        self._course, self._looking = self._new_course(), LoopOutlook()
        self._training: Callable[[], object] = lambda: None  # a weak reference

    @property
    def run(self) -> Run | None:
        """Run into whose record data goes; None before the first step."""
        return self._course.run

    def attach(
        self, run: Run, data: Iterable[Any] | None = None, steps_per_epoch: int | None = None
    ) -> FollowedRun:
        """Collect from a run's training, in your own loop.

        Parameters
        ----------
        run : Run
        data : iterable, optional
            Training data to describe.
        steps_per_epoch : int, optional
            Steps of an epoch, by default the length of ``data``; needed if epochs are counted.

        Returns
        -------
        FollowedRun
            ``metric(outputs)`` passes the loss of a step; ``remove()`` ends the collection.

        Raises
        ------
        TypeError
            ``run`` is not a run, ``data`` is not iterable, or ``steps_per_epoch`` is not a whole
            number.
        ValueError
            The collector follows a training already, or another one follows the run; epochs
            without a length, or of no step.
        ClosedRunError

        Examples
        --------
        >>> run = nbp.watch(model, optimizer)  # doctest: +SKIP
        >>> following = nbp.SummaryCollector("summary").attach(run)  # doctest: +SKIP
        """
        if not isinstance(run, Run):
            raise TypeError(f"attach({type(run).__name__}): what nbp.watch returns is expected")
        known = None if data is None else as_dataset(data)
        length = None if known is None else known.length
        if steps_per_epoch is not None:
            length = whole_number("attach", "steps_per_epoch", steps_per_epoch)
        if self.settings.unit == "epoch" and length is None:
            raise ValueError(
                "attach(run) with unit='epoch': how long is one? Allowed: steps_per_epoch=..., or "
                "data that has a length"
            )
        return FollowedRun(run, self._course_of(run), known, length)

    # ---------------------------------------------------------------- the loop's part

    def on_start(self, loop: Loop, data: Dataset) -> None:
        """Start a run of the loop."""
        # A replay only restores a state: its steps were collected when they were trained.
        if loop.replaying:
            return
        course, run = self._course_of(loop), self._run_of(loop)
        step = run.controls.status_head().step
        # The run may count from another step than the loop, as after a resume.
        outlook = self._looking.begin(loop, data, step - loop.loop_step)
        course.start(run, step, outlook, loop, data)

    def on_step(self, loop: Loop, metrics: Mapping[str, Value]) -> None:
        """Handle a trained step."""
        if loop.replaying:
            return
        step, loss = loop.loop_step + self._looking.shift, metrics["loss"]
        self._course.given(step, loss)
        self._course.collect(step)
        self._course.stepped(step, loss)

    def on_epoch(self, loop: Loop) -> None:
        """Handle a trained epoch."""
        if loop.replaying:
            return
        units, last = self._course.units, loop.loop_step + self._looking.shift - 1
        if units.unit == "epoch" and units.unit_of(last) is None:  # its end came unforeseen
            units.outlook = self._looking.ended(loop)
            self._course.given(last, loop.last_metrics.get("loss"), is_over=True)
            self._course.collect(last)
        self._course.epoch_ended(last)
        units.outlook = self._looking.next(loop)

    def on_eval(self, loop: Loop, metrics: Mapping[str, float]) -> None:
        """Handle an evaluation of the loop."""
        if not loop.replaying and self._course.run is not None:
            self._course.evaluated(loop.n_updates + self._looking.shift, metrics)

    def on_close(self, loop: Loop) -> None:
        """End a run of the loop."""
        if not loop.replaying and self._course.run is not None:
            self._course.end(loop.loop_step + self._looking.shift)

    # ---------------------------------------------------------------- inside

    def _course_of(self, training: Loop | Run) -> Course:
        """Return the course of a training; a new one for another training than before.

        Raises
        ------
        ValueError
            The collector follows another training.
        """
        is_known = self._training() is training
        if self._course.is_busy and (not is_known or isinstance(training, Run)):
            raise ValueError(f"{type(self).__name__}: this collector follows a training already")
        if not is_known or self._course.run is None:
            self._course.remove()
            self._course, self._looking = self._new_course(), LoopOutlook()
            self._training = weakref.ref(training)
        return self._course

    def _new_course(self) -> Course:
        items = [read(self.settings) for read in ITEMS]
        return Course(self.settings, [item for item in items if item is not None])

    def _run_of(self, loop: Loop) -> Run:
        """Return the run that records: the loop's, another that watches the model, or a new one."""
        if loop.run is not None and not loop.run.closed:
            return loop.run
        watching = run_of(loop.trainer.model)
        if watching is not None:
            return watching
        store = place_of_record(self.settings.summary_dir, goes_on=loop.loop_step > 0)
        return loop.watch(store=store, probes=None, metrics=False)


def place_of_record(folder: Path, goes_on: bool) -> Path:
    """Return the location of the record: a new one, or the newest if training continues."""
    places = (folder / f"record{f'-{n}' if n > 1 else ''}.zarr" for n in count(1))
    taken = [*takewhile(Path.exists, places)]
    if goes_on and taken:
        return taken[-1]
    n = len(taken) + 1
    return folder / (f"record-{n}.zarr" if n > 1 else "record.zarr")
