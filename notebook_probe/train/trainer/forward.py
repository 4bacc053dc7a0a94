"""A forward pass and its loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from notebook_probe.probes.step.containers import tensors_of
from notebook_probe.train.data.batch import LABEL_KEYS, Batch
from notebook_probe.train.trainer.losses import collected_losses

__all__ = ["Forward", "LossFn", "Passed"]

LossFn: TypeAlias = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Passed:
    """Result of a forward pass.

    Attributes
    ----------
    total : Tensor
        The loss with every term, 0-d.
    own : Tensor or None
        Loss of ``loss_fn`` alone, 0-d.
    each : Tensor or None
        Value that ``loss_fn`` returned, if it was one loss per sample.
    output, target
        Arguments of ``loss_fn`` and metrics.
    """

    total: Tensor
    own: Tensor | None
    each: Tensor | None
    output: Any
    target: Any

    @property
    def weight(self) -> int:
        """Number of samples: the leading dimension of the first output tensor."""
        first = next(iter(tensors_of(self.output)), None)
        return first.shape[0] if first is not None and first.ndim else 1


class Forward:
    """Forward pass: the model on a batch, then the loss function on its output.

    Parameters
    ----------
    model : nn.Module
    loss_fn : callable or None
    labels_first : bool
        ``loss_fn([labels], [predictions])`` instead of ``loss_fn(prediction, label)``.
    """

    def __init__(self, model: nn.Module, loss_fn: LossFn | None, labels_first: bool) -> None:
        self._model, self._loss_fn, self._labels_first = model, loss_fn, labels_first
        self._takes_spec = _takes_spec(model)
        self._hidden: dict[tuple[str, ...], frozenset[str]] = {}

    def __call__(self, batch: Batch) -> Passed:
        """Run the model on a batch.

        Raises
        ------
        ValueError
            There is neither a loss function nor a term that the model adds.
        TypeError
            The loss function returns no tensor.
        """
        with collected_losses() as terms:
            output = self.output(batch)
            target = self._target(batch)
            raw = self._loss(output, batch, target)
            own = raw.mean() if raw is not None and raw.ndim else raw
            total = own
            if terms:
                added = torch.stack([*terms]).sum() if len(terms) > 1 else terms[0]
                total = added if own is None else own + added
        if total is None:
            raise ValueError(
                "there is no loss: the trainer has no loss_fn, and nothing in the model called "
                "add_loss"
            )
        each = raw if raw is not None and raw.ndim == 1 else None
        return Passed(total, own, each, output, target)

    def output(self, batch: Batch) -> Any:
        """Return the model's output; a forward with a keyword ``*, spec`` receives the kind."""
        keywords = self._keywords(batch)
        if self._takes_spec:
            keywords = {**keywords, "spec": batch.spec}
        return self._model(*batch.inputs, **keywords)

    def _loss(self, output: Any, batch: Batch, target: Any) -> Tensor | None:
        if self._loss_fn is None:
            return None
        if self._labels_first:
            outputs = [*output] if isinstance(output, tuple | list) else [output]
            found = self._loss_fn([*batch.labels], outputs)
        else:
            found = self._loss_fn(output, target) if batch.labels else self._loss_fn(output)
        if not isinstance(found, Tensor | None):
            raise TypeError(
                f"loss_fn returned {type(found).__name__} {found!r:.60}; a tensor is expected, "
                f"without float(), .item() or numpy on the way"
            )
        return found

    def _target(self, batch: Batch) -> Any:
        return batch.labels[0] if len(batch.labels) == 1 else batch.labels

    def _keywords(self, batch: Batch) -> dict[str, Any]:
        """Return keywords: a dict batch is passed whole, labels only to a model naming them."""
        if not batch.keywords:
            return {}
        names = tuple(batch.keywords)
        hidden = self._hidden.get(names)
        if hidden is None:
            hidden = self._hidden[names] = frozenset(names) & self._labels_unknown()
        return {name: value for name, value in batch.keywords.items() if name not in hidden}

    def _labels_unknown(self) -> frozenset[str]:
        code = getattr(type(self._model).forward, "__code__", None)
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if code else ()
        return frozenset(LABEL_KEYS) - frozenset(known)


def _takes_spec(model: nn.Module) -> bool:
    """Return whether a forward has the keyword ``spec``; in front of ``*`` it is an input."""
    code = getattr(type(model).forward, "__code__", None)
    if code is None:
        return False
    first = code.co_argcount
    return "spec" in code.co_varnames[first : first + code.co_kwonlyargcount]
