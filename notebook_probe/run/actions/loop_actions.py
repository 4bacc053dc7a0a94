"""Reports of a training loop to its run: batches, ends of steps, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import Tensor

from notebook_probe.checks import whole_number
from notebook_probe.errors import ScheduleError, shown_as
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.handle import Handle
from notebook_probe.run.loop.batches import Batches, read_batch
from notebook_probe.run.loop.probe_batch import keep_probe_batch
from notebook_probe.schedules.span import UNKNOWN

__all__ = ["LoopActions"]

Batch = TypeVar("Batch")


@shown_as("run")
class LoopActions(LiveActions):
    """Methods for training loops, all optional."""

    def batch(self, **values: Any) -> None:
        """Pass data of a batch that only the loop knows, e.g. ``run.batch(targets=y, indices=i)``.

        Quantities name it ``batch_targets``, ``batch_indices``, and so on, alone or together with a
        tensor of a call. Call it when the batch is available and before the optimizer's step, as
        often as there are new values. It applies to every call of the model until a name is given
        again, which starts the next micro-batch, or until the step is over. After the step, only
        tensors that still have their graph, such as losses, are assigned to the previous batch.
        Nothing is copied to the host here, and nothing is computed while no quantity needs it.

        Parameters
        ----------
        **values : Tensor, array, list of numbers, or a container of tensors
            ``targets`` (class indices), ``losses`` (one per sample), ``buckets`` (whole numbers,
            see `loss_by_bucket`) and ``indices`` (which samples of the dataset) are read by
            built-in quantities. A quantity needs ``targets`` and ``indices`` before the forward
            pass if it also reads an ``output``.

        Raises
        ------
        QuantityError
            For a value without tensors or numbers.

        Examples
        --------
        >>> for x, y, indices in loader:  # doctest: +SKIP
        ...     run.batch(targets=y, indices=indices)
        ...     losses = F.cross_entropy(model(x), y, reduction="none")
        ...     run.batch(losses=losses)
        ...     losses.mean().backward()
        """
        observer = self._live.observer
        observer.take_batch({name: read_batch(name, value) for name, value in values.items()})

    def batches(self, loader: Iterable[Batch]) -> Batches[Batch]:
        """Return the batches of ``loader``, and measure the time spent waiting for them.

        The record has the start of each pass and, for a loader with a ``batch_size``, the samples
        per step, so that runs can be compared by epochs and by samples.

        Parameters
        ----------
        loader : iterable
            Every epoch may iterate over it again; batches are passed on unchanged.

        Examples
        --------
        >>> run.attach("", ["data_wait_share", "samples_per_second"])  # doctest: +SKIP
        >>> for x, y in run.batches(loader):  # doctest: +SKIP
        ...     train(x, y)
        """
        return Batches(loader, self._live.observer, self._live.passes)

    def expect(
        self,
        *,
        start_step: int | None = None,
        end_step: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Set the progress and the end of training, for the status, the panel's bar and schedules.

        ``status().seconds_left`` follows from the speed of the last steps; schedules such as
        ``"times(20)"`` use it from the next step on. Omitted arguments keep their values. The end
        is not a limit: training may stop before it, or continue.

        Parameters
        ----------
        start_step : int, optional
            First step of this training, by default 0. A second training in the same run sets its
            first step.
        end_step : int, optional
            The record's step when training ends: the number of updates completed by then; -1 if
            unknown. After training has passed it, the end counts as unknown.
        epoch : int, optional
            Current epoch, shown unchanged; -1 means unknown.

        Raises
        ------
        ScheduleError
            An argument is not a whole number from -1, or the end is before the start.
        ClosedRunError

        Examples
        --------
        >>> run.attach("*", "weight_norm", "times(20)")  # doctest: +SKIP
        >>> run.expect(end_step=len(loader) * n_epochs)  # doctest: +SKIP
        >>> for epoch in range(n_epochs):  # doctest: +SKIP
        ...     run.expect(epoch=epoch)
        """
        live = self._live
        given = {"start_step": start_step, "end_step": end_step, "epoch": epoch}
        known = {name: value for name, value in given.items() if value is not None}
        for name, value in known.items():
            least = 0 if name == "start_step" else -1
            whole_number(f"expect: {name}", value, least, error=ScheduleError)
        state = live.state
        start, end = (
            known.get("start_step", state.start_step),
            known.get("end_step", state.end_step),
        )
        if end != UNKNOWN and end < start:
            raise ScheduleError(
                f"expect(start_step={start}, end_step={end}): an end at or after the start, or -1"
            )
        state.start_step, state.end_step = start, end
        state.epoch = known.get("epoch", state.epoch)
        # An epoch alone changes no schedule.
        if start_step is not None or end_step is not None:
            live.probes.expect(start, end)
            live.change_between_steps()

    def boundary(self) -> None:
        """Apply Pause, Step and Stop here, before a batch is drawn, so that none is lost.

        Without this call, they act in the forward that starts the next step, after its batch has
        been drawn. A step whose update has happened ends here, and requests are applied. Between
        the micro-batches of a step the call does nothing. Call it on the training thread.

        Raises
        ------
        TrainingStopped
            After Stop; every batch that was drawn has been trained.
        ClosedRunError

        Examples
        --------
        >>> batches = iter(loader)  # doctest: +SKIP
        >>> while True:  # doctest: +SKIP
        ...     run.boundary()
        ...     train(next(batches))
        """
        self._live.observer.steps.end_step()

    def step(self) -> None:
        """Close the open step by hand, after backward, in loops without an optimizer.

        From the first call on, only this method closes steps.

        Raises
        ------
        RuntimeError
            Another thread trains the model and is paused: ``run.resume()`` continues it, and Step
            in the panel trains one step.
        ClosedRunError
            The run was closed.
        """
        live = self._live
        # The call would wait in the same pause, which no other thread may then end.
        if live.gate.is_waiting and live.gate.is_elsewhere:
            raise RuntimeError(
                "another thread trains this model, closes its steps, and is paused: run.resume() "
                "continues it, and Step in the panel trains one step"
            )
        live.observer.steps.step()

    def probe_batch(self, inputs: Any, targets: Any, loss_fn: Callable[[Any, Any], Tensor]) -> None:
        """Store a batch on which quantities such as ``sharpness`` run the model again.

        They do so at the start of a due step, with the weights at that time, the model in
        evaluation mode, and without autocast. Parameters, gradients, buffers, modes and random
        generators are restored bit for bit; nothing else of any run counts these calls. Your own
        hooks and ``loss_fn`` are called as in any call of the model. A new batch replaces the old
        one, and is the new reference for comparisons with the first due step.

        Parameters
        ----------
        inputs : Tensor, tuple or mapping
            Inputs of the model: a tuple is its arguments, a mapping its keywords.
        targets : anything
            Targets for ``loss_fn``. Inputs and targets are copied.
        loss_fn : callable
            ``loss_fn(outputs, targets)``, the mean loss as one real number.

        Raises
        ------
        QuantityError
            ``loss_fn`` is not a function, or does not return one real number.
        NotApplicableError
            The parameters are split over processes.
        UnreadableError
            The model has lazy parameters and was never called.
        ClosedRunError
        Exception
            Any error of the model or ``loss_fn``: both are called at once, unless another thread
            trains the model.

        Examples
        --------
        >>> run.probe_batch(images, labels, nn.functional.cross_entropy)  # doctest: +SKIP
        >>> run.attach("", "sharpness", "every(100)")  # doctest: +SKIP
        >>> run.attach("layer*", "cka_to_reference", "every(100)")  # doctest: +SKIP
        """
        live = self._live
        batch = ProbeBatch.of(inputs, targets, loss_fn)
        keep_probe_batch(batch, live.observer, live.gate, live.writer)

    @contextmanager
    def at_step(self, step: int, only: Handle | None = None) -> Iterator[None]:
        """Record values inside at ``step``, to evaluate an old checkpoint.

        Calls of the model inside count as evaluations of the state after ``step`` updates, whatever
        mode it is in, and `log` writes there too. Every probe of phase ``"eval"`` measures, due or
        not, except those that need several steps. The training does not continue inside. Values
        recorded earlier at this step are no longer read.

        With ``only``, a result of `attach`, no other probe measures, and other values recorded
        earlier at this step are still read.

        You set the model's state: load the checkpoint inside, and load the newest one again before
        you continue to train.

        Raises
        ------
        ValueError
            ``step`` is not a whole number from 0.
        RuntimeError
            Another thread trains the model, or the call is nested.
        ClosedRunError
            The run was closed.

        Examples
        --------
        >>> run.attach("*", "zero_fraction", phase="eval")  # doctest: +SKIP
        >>> with run.at_step(1000), torch.no_grad():  # doctest: +SKIP
        ...     model.load_state_dict(torch.load("step1000.pt", weights_only=True))
        ...     run.log(test_loss=loss_fn(model.eval()(images), labels))
        """
        live = self._live
        step = whole_number("at_step: step", step)
        if live.gate.is_elsewhere:
            raise RuntimeError("another thread trains this model now; evaluate a copy, or wait")
        with live.past.at_step(step, None if only is None else only.probes):
            yield
