"""What the training loop tells a run: numbers of its own, its batches, where a step ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, SupportsFloat, TypeVar

from torch import Tensor

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.reading.closed_steps import ClosedSteps
from notebook_probe.quantities.define.numbers import read_scalar
from notebook_probe.run.batches import Batches, read_batch
from notebook_probe.run.rows.row_keeper import RowKeeper

__all__ = ["FromLoop"]

Batch = TypeVar("Batch")


class FromLoop(ABC):
    """The part of a run that a training loop talks to; a loop that says nothing is fine."""

    _rows: RowKeeper
    _steps: ClosedSteps
    _observer: Observer

    @abstractmethod
    def _check_open(self) -> None: ...

    def log(self, **scalars: SupportsFloat) -> None:
        """Record scalars of your own at the open step, e.g. ``run.log(loss=loss)``.

        A tensor stays on its device until the next flush. The same name again in one step
        replaces the value.

        Raises
        ------
        QuantityError
            For anything but one real number, and for a name that cannot be a variable's.
        """
        self._check_open()
        checked = {name: read_scalar(f"log({name}=...):", value) for name, value in scalars.items()}
        self._rows.declare_scalars(checked)
        observer = self._observer
        open_frame = observer.evaluation.frame if observer.phase.is_past else observer.frame
        frame = open_frame or self._steps.between_steps(observer.clock.step)
        frame.scalars.update(checked)
        frame.on_device |= any(isinstance(value, Tensor) for value in checked.values())

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
        self._check_open()
        tensors = {name: read_batch(name, value) for name, value in values.items()}
        self._observer.take_batch(tensors)

    def batches(self, loader: Iterable[Batch]) -> Batches[Batch]:
        """The batches of ``loader``, with the time spent waiting for them measured.

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
        self._check_open()
        return Batches(loader, self._observer)

    def step(self) -> None:
        """Close the open step by hand, after backward, in loops without an optimizer.

        From the first call on, steps close only so.
        """
        self._check_open()
        self._observer.step()
