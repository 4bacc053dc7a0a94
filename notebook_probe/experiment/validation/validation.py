"""One validation of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import nn

from notebook_probe.checks import whole_number
from notebook_probe.experiment.validation.aggregations import append
from notebook_probe.train.data.dataset import begin_again
from notebook_probe.train.data.loader_generators import loader_generators, set_loader_generators
from notebook_probe.train.trainer.evaluation import evaluating

__all__ = [
    "Agg",
    "BatchStep",
    "Call",
    "OnlineAgg",
    "Targets",
    "ValidLoop",
    "Validation",
    "call_whole",
]

Result: TypeAlias = "dict[str, Any]"

Call: TypeAlias = Callable[[nn.Module, Any], Any]
"""A model with a batch: what it gives."""

Targets: TypeAlias = Callable[[Any, Any], Mapping[str, Any]]
"""Function of a batch and the model's output that returns results."""

BatchStep: TypeAlias = Callable[[Any], Mapping[str, Any]]
"""Function of a batch that returns results."""

ValidLoop: TypeAlias = Callable[[BatchStep, Iterator[Any]], Mapping[str, Any]]
OnlineAgg: TypeAlias = Callable[[Any, Mapping[str, Any], int], Any]
Agg: TypeAlias = Callable[[Any], Any]


def call_whole(model: nn.Module, batch: Any) -> Any:
    """Call the model with the whole batch."""
    return model(batch)


@contextmanager
def same_loader_generators(data: Any) -> Iterator[None]:
    """Restore a loader's generators after the context, so that training shuffles as without it."""
    states = loader_generators(data)
    try:
        yield
    finally:
        set_loader_generators(data, states)


@dataclass(frozen=True)
class Validation:
    """A pass over data in evaluation mode, without gradients, and one result of it.

    Batch i, from 0, leads to a dict; ``agg = online_agg(agg, result, i)``, None at first; the
    result is ``agg_func(agg)`` at the end. Modes, buffers and random generators are left as they
    were.

    Parameters
    ----------
    name : str
    data : iterable of batches
        Batches, iterated from the beginning, and again if they end before `num_steps`.
    targets : callable, optional
        ``targets(inputs, output)``, a dict; by default those that `run` is given.
    num_steps : int, optional
        Number of batches; by default ``data.total_batches``, else ``len(data)``.
    agg : callable, optional
        By default the result is kept unchanged, under ``"result"`` unless it is a dict.
    online_agg : callable, optional
        By default the list of all results.
    loop : callable, optional
        ``loop(step, batches)``, called for each of the steps in the place of
        ``step(next(batches))``.

    Raises
    ------
    ValueError
        Nobody knows how many batches there are.

    Examples
    --------
    >>> import torch
    >>> from notebook_probe.experiment.validation import mean_dict
    >>> data = [{"x": torch.tensor([[1.0]])}, {"x": torch.tensor([[3.0]])}]
    >>> targets = lambda inputs, output: {"mean": output.mean()}
    >>> validation = Validation("valid0", data, targets, agg=mean_dict)
    >>> validation.run(torch.nn.Identity(), call=lambda model, batch: model(batch["x"]))
    {'mean': 2.0}
    """

    name: str
    data: Any
    targets: Targets | None = None
    num_steps: int | None = None
    agg: Agg | None = None
    online_agg: OnlineAgg | None = None
    loop: ValidLoop | None = None

    def __post_init__(self) -> None:
        self.steps  # noqa: B018 (asked before a training could begin with it)

    @property
    def steps(self) -> int:
        """Number of batches in a run."""
        if self.num_steps is None:
            return self._of_data()
        return whole_number(f"{self._who}: num_steps", self.num_steps)

    def run(
        self,
        model: nn.Module,
        default_targets: Targets | None = None,
        call: Call = call_whole,
        on_batch: Callable[[int, Result], object] | None = None,
    ) -> dict[str, Any]:
        """Validate a model; its result.

        Parameters
        ----------
        model : nn.Module
        default_targets : callable, optional
            Used if it has none: the loss.
        call : callable
            ``call(model, batch)``; by default the model is called with the batch.
        on_batch : callable, optional
            ``on_batch(i, result)``, called with the result of each batch.

        Raises
        ------
        ValueError
            A batch led to something else than a dict, or the data has no batch.
        """
        agg: Any = None
        # A loader draws a seed from its generator for each pass, in a validation, too.
        with evaluating(model), same_loader_generators(self.data):
            for i, result in enumerate(self._results(model, default_targets, call)):
                if on_batch is not None:
                    on_batch(i, result)
                agg = (self.online_agg or append)(agg, result, i)
            found = agg if self.agg is None else self.agg(agg)
        return dict(found) if isinstance(found, Mapping) else {"result": found}

    def _results(
        self, model: nn.Module, default_targets: Targets | None, call: Call
    ) -> Iterator[Result]:
        targets = self.targets if self.targets is not None else default_targets
        if targets is None:
            raise ValueError(f"{self._who} has no targets, and there is no loss to take instead")

        def step(batch: Any) -> Mapping[str, Any]:
            return targets(batch, call(model, batch))

        batches = self._batches()
        for i in range(self.steps):
            result = step(next(batches)) if self.loop is None else self.loop(step, batches)
            if not isinstance(result, Mapping):
                raise ValueError(
                    f"{self._who}, batch {i}: {type(result).__name__}; a dict is expected"
                )
            yield dict(result)

    def _batches(self) -> Iterator[Any]:
        """Yield the required number of batches."""
        # As many passes as needed: `num_steps` may be more than the data has.
        while True:
            n = 0
            begin_again(self.data)
            for batch in self.data:
                yield batch
                n += 1
            if not n:
                raise ValueError(f"{self._who}: the data has no batch, or can be gone through once")

    def _of_data(self) -> int:
        total = getattr(self.data, "total_batches", None)
        if total is not None:
            return int(total)
        try:
            return len(self.data)
        except TypeError:
            raise ValueError(
                f"{self._who}: how many batches? Neither num_steps nor total_batches nor the "
                f"length of the data is known"
            ) from None

    @property
    def _who(self) -> str:
        return f"validation {self.name!r}"
