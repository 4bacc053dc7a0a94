"""What the training loop tells its run: batches, where a step ends, what to evaluate."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.errors import ScheduleError
from notebook_probe.probes.replay.probe_batch import ProbeBatch
from notebook_probe.record.format.notes import CHECKPOINT
from notebook_probe.run.handle import Handle
from notebook_probe.run.loop.batches import Batches, read_batch
from notebook_probe.run.loop.probe_batch import keep_probe_batch
from notebook_probe.run.parts import RunParts
from notebook_probe.schedules.span import UNKNOWN

__all__ = ["LoopActions"]

Batch = TypeVar("Batch")


class LoopActions(ABC):
    """What a training loop may call; one that calls nothing is fine."""

    @property
    @abstractmethod
    def _live(self) -> RunParts:
        """The parts of the run; raises ClosedRunError once it is closed."""

    def batch(self, **values: Any) -> None:
        """Hand over what only the loop knows of a batch, e.g. ``run.batch(targets=y, indices=i)``.

        Quantities name it ``batch_targets``, ``batch_indices``, and so on, alone or beside a
        tensor of a call. Call it once the batch is there and before the optimizer's step, as often
        as there is something new. It holds for every call of the model until a name is given
        again, which begins the next micro-batch, or until the step is over. After the step only
        what still has its graph, such as losses, is known to be of the batch before. Nothing is
        copied to the host here, and nothing done while no quantity needs it.

        Parameters
        ----------
        **values : Tensor, array, list of numbers, or a container of tensors
            ``targets`` (class indices), ``losses`` (one per sample) and ``indices`` (which samples
            of the data set) are those that our own quantities read. A quantity needs ``targets``
            and ``indices`` before the forward pass if it also reads an ``output``.

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
        """The batches of ``loader``, with the time spent waiting for them measured.

        Where each pass through them begins is noted in the record, and of a loader that has a
        ``batch_size`` how many samples a step takes, so that runs can be compared by epochs and
        by samples.

        Parameters
        ----------
        loader : iterable
            Every epoch may go through it again; batches come as they are.

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
        """Say how far training is and will go: for the status, the panel's bar, and schedules.

        ``status().seconds_left`` follows from the speed of the last steps; schedules such as
        ``"times(20)"`` act upon it from the next step on. What is left out stays as it was said
        before. It is no limit: training may stop before, or go on.

        Parameters
        ----------
        start_step : int, optional
            The first step of this training; 0 at first. A second one in the same run says its own.
        end_step : int, optional
            The record's step when training ends: the number of updates completed by then; -1 where
            nobody knows. Once training has gone past it, it counts as not known.
        epoch : int, optional
            The one that is trained now; shown as it is given. -1 is for what is not known.

        Raises
        ------
        ScheduleError
            For anything but a whole number from -1, and an end before the start.
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
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ScheduleError(
                    f"expect({name}={value!r}): a whole number from {least} is expected"
                )
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
        if start_step is not None or end_step is not None:
            live.probes.expect(start, end)
            live.change_between_steps()

    @property
    def end_step(self) -> int:
        """The record's step when training ends, as `expect` was told; -1 where nobody knows."""
        return self._live.state.end_step

    @property
    def optimizers(self) -> list[Optimizer]:
        """Those that own some of the model's parameters, as far as they have shown themselves."""
        return self._live.observer.updates.optimizers

    @property
    def is_shown(self) -> bool:
        """A panel of this process shows the run."""
        return self._live.gate.is_followed

    def boundary(self) -> None:
        """Let Pause, Step and Stop act here, before a batch is drawn, so that none is lost.

        Without it they act in the forward that begins the next step, whose batch has been drawn.
        The step whose update has happened ends here, and what was requested is done. Amid the
        micro-batches of a step it does nothing. It is called on the thread that trains.

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
        self._live.observer.end_step()

    def loop_raised(self, error: BaseException) -> None:
        """Say that the loop is about to end by an exception, on the thread that trains.

        Where ``pause_when(error=True)`` is armed it is held here, its state kept to be looked at;
        raise the exception then as ever. An interrupt and Stop are no errors.

        Examples
        --------
        >>> try:  # doctest: +SKIP
        ...     train()
        ... except Exception as error:
        ...     run.loop_raised(error)
        ...     raise
        """
        self._live.loop_raised(error)

    def step(self) -> None:
        """Close the open step by hand, after backward, in loops without an optimizer.

        From the first call on, steps close only so.
        """
        self._live.observer.step()

    def probe_batch(self, inputs: Any, targets: Any, loss_fn: Callable[[Any, Any], Tensor]) -> None:
        """Keep a batch, on which quantities such as ``sharpness`` run the model once more.

        They do so as a due step begins, of the weights with which it begins, with the model in
        evaluation mode and without autocast. Parameters, gradients, buffers, modes and random
        generators are left as they were, bit for bit; nothing else of any run counts these calls.
        Your own hooks and ``loss_fn`` are called as in any call of the model. A new batch replaces
        the old one, and is the new reference of what is compared with the first due step.

        Parameters
        ----------
        inputs : Tensor, tuple or mapping
            What the model is called with: a tuple is its arguments, a mapping its keywords.
        targets : anything
            Handed to ``loss_fn``; copies are kept of both.
        loss_fn : callable
            ``loss_fn(outputs, targets)``, the mean loss as one real number.

        Raises
        ------
        QuantityError
            ``loss_fn`` is no function, or does not return one real number.
        NotApplicableError
            The parameters are split over processes.
        UnreadableError
            The model has lazy parameters and was never called.
        ClosedRunError
        Exception
            Whatever the model or ``loss_fn`` raises: both are tried at once, unless another thread
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

    def checkpoint_saved(
        self, step: int, path: str, nbytes: int, loss: float | None = None
    ) -> None:
        """Note that the training can go back to a step: an event of kind ``"checkpoint"``.

        `notebook_probe.train` tells it by itself; a loop of your own may. The panel has a history
        of them below its heat map.

        Parameters
        ----------
        step : int
            Updates completed at the state that was saved.
        path : str
        nbytes : int
        loss : float, optional
            That of the state.

        Raises
        ------
        ClosedRunError

        Examples
        --------
        >>> run.checkpoint_saved(500, "checkpoints/500.pt", 314_000)  # doctest: +SKIP
        """
        detail = {"step": int(step), "bytes": int(nbytes), "path": str(path), "loss": loss}
        text = f"checkpoint of step {step}"
        self._live.writer.event(step, CHECKPOINT, text, json.dumps(detail))

    @property
    def watched_model(self) -> nn.Module:
        """The model that is watched, which a run holds weakly."""
        return self._live.probes.model

    @property
    def kept_batch(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Arguments and keywords of the batch that `probe_batch` has kept; None without one."""
        batch = self._live.observer.replay.batch
        return None if batch is None else (batch.args, batch.kwargs)

    @contextmanager
    def at_step(self, step: int, only: Handle | None = None) -> Iterator[None]:
        """Record what happens inside as of ``step``: an old checkpoint evaluated.

        Calls of the model inside count as evaluations of the state after ``step`` updates,
        whatever mode it is in, and `log` writes there too. Every probe of phase ``"eval"``
        measures, due or not; but none of several steps, of which the others are not there. The
        step of the training stays as it is, and nothing inside is part of it. What was recorded
        at this step before is read no more.

        With ``only``, what `attach` returned, no other probe measures, and what others measured
        at this step before stays what is read.

        The model's state is yours: load the checkpoint inside, and before you train on load the
        newest one again.

        Raises
        ------
        ValueError
            For anything but a whole number from 0.
        RuntimeError
            While another thread trains the model, or within itself.
        ClosedRunError
            After the run was closed.

        Examples
        --------
        >>> run.attach("*", "zero_fraction", phase="eval")  # doctest: +SKIP
        >>> with run.at_step(1000), torch.no_grad():  # doctest: +SKIP
        ...     model.load_state_dict(torch.load("step1000.pt", weights_only=True))
        ...     run.log(test_loss=loss_fn(model.eval()(images), labels))
        """
        live = self._live
        if not isinstance(step, int) or isinstance(step, bool) or step < 0:
            raise ValueError(f"at_step({step!r}): a whole number from 0 is expected")
        if live.gate.is_elsewhere:
            raise RuntimeError("another thread trains this model now; evaluate a copy, or wait")
        with live.past.at_step(step, None if only is None else only.probes):
            yield
