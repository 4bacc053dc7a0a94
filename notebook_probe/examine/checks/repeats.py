"""Check that evaluation repeats, and does not change the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from notebook_probe.examine.checks.dropout import dropped_share
from notebook_probe.examine.checks.who_trains import named
from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject, buffers_put_back, first_output
from notebook_probe.source_lines import user_line

__all__ = ["evaluation_repeats"]

CHECK = "evaluation repeats"
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
    """Mode that notes the lines at which elements are dropped."""

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
        given = kwargs or {}
        if dropped_share(func, args, given) > 0 and (place := user_line()) not in self.places:
            self.places.append(place)
        return func(*args, **given)
