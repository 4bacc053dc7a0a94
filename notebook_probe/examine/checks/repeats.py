"""Check that evaluation repeats, and does not change the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from notebook_probe.examine.checks.who_trains import named
from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject, buffers_put_back, first_output
from notebook_probe.source_lines import user_line

__all__ = ["evaluation_repeats"]

CHECK = "evaluation repeats"
DROPOUTS = {
    getattr(functional, name)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                 "feature_alpha_dropout")
}  # fmt: skip

RUNNING = {"running_mean", "running_var", "num_batches_tracked"}


def evaluation_repeats(subject: Subject) -> Iterator[Finding]:
    """Evaluate one batch twice, with other random numbers, and compare outputs and buffers."""
    dropped = _Dropouts()
    with torch.no_grad(), buffers_put_back(subject.model):
        before = {name: one.clone() for name, one in subject.model.named_buffers()}
        with dropped:
            first = first_output(subject.call(seed=1))
        now = dict(subject.model.named_buffers())
        moved = [name for name in before if not torch.equal(before[name], now[name])]
    second = subject.output(seed=2)
    if moved:
        is_norm = any(name.rpartition(".")[2] in RUNNING for name in moved)
        text = f"evaluating a batch changes {named(moved)}"
        yield Finding(CHECK, "wrong" if is_norm else "note", text)
    if dropped.places:
        text = f"dropout stays on in evaluation mode, at {named(dropped.places)}"
        yield Finding(CHECK, "wrong", text, "F.dropout(x, p, training=self.training)")
    elif first is None or second is None:
        yield Finding(CHECK, "unknown", "the model returns no tensor")
    elif first.shape != second.shape or not _are_equal(first, second):
        text = "two evaluations of one batch differ: something random stays on in evaluation mode"
        yield Finding(CHECK, "note", text)
    elif not moved:
        yield Finding(CHECK, "good", "two evaluations of one batch are equal")


def _are_equal(one: Tensor, other: Tensor) -> bool:
    # NaN would not be equal to itself.
    return torch.equal(one.nan_to_num(), other.nan_to_num())


class _Dropouts(TorchFunctionMode):
    """Notes where dropout is called so that it acts."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named_ = dict(kwargs or {})
        if func in DROPOUTS and _acts(args, named_):
            self._note()
        if func is functional.scaled_dot_product_attention and _drops_attention(args, named_):
            self._note()
        return func(*args, **named_)

    def _note(self) -> None:
        place = user_line()
        if place not in self.places:
            self.places.append(place)


def _acts(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    p = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    training = args[2] if len(args) > 2 else kwargs.get("training", True)
    return bool(training) and p > 0


def _drops_attention(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    p = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
    return bool(p > 0)
