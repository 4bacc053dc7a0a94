"""Targets of a cross entropy, as its node has saved them: whether they are of one class alone."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.checks.values import past_shapes
from notebook_probe.run.facts.later import Judge, Later
from notebook_probe.run.facts.losses.loss_ends import links

__all__ = ["N_BATCHES", "ClassTargets", "are_ignored", "are_of_a_list", "ignored_index"]

N_BATCHES, FEWEST = 4, 8
"""Batches that are compared, and targets of each: fewer may be of one class by chance."""
SCALES = {"LogSoftmaxBackward0", "DivBackward0", "MulBackward0"}
"""Nodes that keep the order of scores, such as a temperature."""
LISTS = {"CatBackward0", "StackBackward0", "BmmBackward0"}
"""Nodes of scores that were put together, or are products with candidates of each sample."""


class ClassTargets:
    """Range of the classes in each of the last batches.

    Parameters
    ----------
    later : Later
        Reads numbers without waiting for a device.
    """

    def __init__(self, later: Later) -> None:
        self._later = later
        self._ranges: deque[tuple[float, float]] = deque(maxlen=N_BATCHES)
        self._seen, self._n_read = (math.inf, -math.inf), 0
        self.new_at: set[int] = set()
        """Steps of jumps of the loss whose classes are all outside of the range before."""

    def read(self, of_classes: Node) -> None:
        """Read the targets of a batch, on the training thread."""
        self._read(of_classes, self._judge)

    def jumped(self, of_classes: Node, step: int) -> None:
        """Read the targets of a batch whose loss has jumped, on the training thread."""
        self._read(of_classes, partial(self._judge_jump, step))

    def _read(self, of_classes: Node, judge: Judge) -> None:
        if are_of_a_list(of_classes):
            return
        targets = getattr(of_classes, "_saved_target", None)
        if type(targets) is not Tensor or targets.numel() < FEWEST or targets.is_meta:
            return
        left_out = targets == ignored_index(of_classes)
        low = torch.where(left_out, torch.iinfo(targets.dtype).max, targets).amin()
        high = torch.where(left_out, torch.iinfo(targets.dtype).min, targets).amax()
        self._later.read([low.double(), high.double()], judge)

    def _judge(self, read: Sequence[Any]) -> None:
        low, high = read
        self._ranges.append((low, high))
        self._n_read += 1
        self._seen = min(low, self._seen[0]), max(high, self._seen[1])

    def _judge_jump(self, step: int, read: Sequence[Any]) -> None:
        """Compare classes with those before: another task has others."""
        (low, high), (lowest, highest) = read, self._seen
        if self._n_read >= N_BATCHES and (low > highest or high < lowest):
            self.new_at.add(step)
            self._seen = min(low, lowest), max(high, highest)

    @property
    def are_sorted(self) -> bool:
        """True if each of the last batches is of one class, and not all of the same."""
        is_each_one = all(low == high for low, high in self._ranges)
        return is_each_one and len(self._ranges) == N_BATCHES and len({*self._ranges}) > 1

    @property
    def only_class(self) -> int | None:
        """The class of all targets in the last batches; None if there are several, or few."""
        classes = {one for both in self._ranges for one in both}
        is_one = len(self._ranges) == N_BATCHES and len(classes) == 1
        return int(classes.pop()) if is_one else None


def are_ignored(loss: Tensor) -> bool:
    """Return whether a cross entropy leaves out all of its targets: its mean is one of nothing."""
    node = loss.grad_fn
    found = None if node is None else next(filter(_is_of_classes, links(node)), None)
    targets = None if found is None else getattr(found, "_saved_target", None)
    if type(targets) is not Tensor or not targets.numel():
        return False
    return bool((targets == ignored_index(found)).all())


def _is_of_classes(node: Node) -> bool:
    return node.name().startswith("NllLoss")


def ignored_index(of_classes: Node | None) -> int:
    """Return the class of targets that are left out; torch returns it without its sign."""
    index: int = getattr(of_classes, "_saved_ignore_index", -100)
    return index - 2**64 if index >= 2**63 else index


def are_of_a_list(of_classes: Node) -> bool:
    """Return whether the scores are those of a list that was put together.

    Where the right one is put first, as the positive of a contrastive loss or the better of two
    answers, all targets are 0, and nothing is lost.
    """
    node = past_shapes(of_classes.next_functions[0][0])
    while node is not None and node.name() in SCALES:
        node = past_shapes(node.next_functions[0][0])
    return node is not None and node.name() in LISTS
