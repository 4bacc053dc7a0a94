"""Facts about outputs and targets of a loss, as the nodes of its graph have saved them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node
from torch.nn import functional as F

from notebook_probe.alerts.rule import Severity
from notebook_probe.examine.checks.values import RANGES, past_shapes
from notebook_probe.run.facts.context import FactContext, root_mean_square

__all__ = [
    "LONGEST_CHAIN",
    "OF_PROBABILITIES",
    "OF_SQUARES",
    "LossEnds",
    "links",
    "saved_tensor",
]

INFINITE = math.inf
BOUNDS = RANGES | {
    "HardsigmoidBackward0": (0.0, 1.0, "a hard sigmoid"),
    "SoftplusBackward0": (0.0, INFINITE, "a softplus"),
    "ExpBackward0": (0.0, INFINITE, "an exponential"),
    "LogSoftmaxBackward0": (-INFINITE, 0.0, "a log_softmax"),
    "LogSigmoidBackward0": (-INFINITE, 0.0, "a logsigmoid"),
}
"""Range of the last operation, by the name of its node."""
OF_SQUARES = ("MseLossBackward0", "SmoothL1LossBackward0", "HuberLossBackward0")
OF_LOGITS = "BinaryCrossEntropyWithLogitsBackward0"
OF_PROBABILITIES = "BinaryCrossEntropyBackward0"
MOST_LINKS = 8
"""Nodes between a loss and what it compares."""
LONGEST_CHAIN = 12
"""Nodes from the loss on among which a kind of loss is looked for."""
FEWEST = 16
"""Targets that are enough for a variance."""
N_READINGS = 5
"""Readings in a row that are at the level of a constant output."""


@dataclass(frozen=True)
class _Ends:
    """Output and targets that a loss compares.

    Attributes
    ----------
    loss : str
        Name of the loss's node.
    output, targets : Tensor
    activation : str
        Name of the node that made the output.
    """

    loss: str
    output: Tensor
    targets: Tensor
    activation: str


class LossEnds:
    """Facts about the numbers that a loss compares.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._later = context.findings, context.later
        self._first_output = context.first_output
        self._ratios: deque[tuple[int, float]] = deque(maxlen=N_READINGS)

    def read(self, root: Node, step: int) -> None:
        """Read what a loss compares, on the training thread; most losses do not say."""
        ends, first = _ends(root), self._first_output.take()
        if ends is None and first is not None:
            self._read_difference(root, *first)
        if ends is None or ends.targets.numel() < 2:
            return
        output, targets = ends.output.detach().float(), ends.targets.detach().float()
        low, high, name, margin = _range(ends)
        # Of a half-open range the targets' own size says how far outside is far.
        far = margin * (high - low if math.isfinite(high - low) else targets.std())
        outside = ((targets < low - far) | (targets > high + far)).float().mean()
        read = [outside, targets.amin(), targets.amax(), targets.square().mean().sqrt()]
        read += [output.square().mean().sqrt(), _ratio(ends.loss, output, targets)]
        self._later.read(read, partial(self._judge, step, name, ends.loss, targets.numel()))

    def _read_difference(self, root: Node, n: int, given: Tensor) -> None:
        """Read a difference with targets from outputs of this size, at the first step."""
        node = next((one for one in links(root) if _difference(one) is not None), None)
        made = None if node is None else saved_tensor(node, "self")
        if made is not None and made.numel() == n > 1:
            self._later.read([root_mean_square(made), given], self._judge_difference)

    def _judge_difference(self, read: Sequence[Any]) -> None:
        """Judge a difference that is as large as the targets, as the outputs are far smaller."""
        size, given = read
        times = self._findings.threshold("targets_out_of_scale", "times")
        if all(map(math.isfinite, read)) and size > times * max(given, 1.0):
            self._say_scale(size, given)

    def _judge(self, step: int, name: str, loss: str, n: int, read: Sequence[Any]) -> None:
        outside, lowest, highest, size, given, ratio = read
        is_finite = all(map(math.isfinite, read[:5]))
        if is_finite and outside > self._findings.threshold("targets_out_of_range", "share"):
            words: dict[str, object] = {"name": name, "outside": f"{outside:.0%}"}
            words |= {"lowest": f"{lowest:.3g}", "highest": f"{highest:.3g}"}
            self._findings.say("targets_out_of_range", step, words=words)
        elif is_finite and step == 0 and loss in OF_SQUARES:
            self._say_scale(size, given)
        if n >= FEWEST:
            self._ratios.append((step, ratio))
            self._say_chance(loss)

    def _say_scale(self, size: float, given: float) -> None:
        """Compare targets with the outputs of a network that has not learned yet."""
        times = self._findings.threshold("targets_out_of_scale", "times")
        is_large = size > times * max(given, 1.0)
        is_small = 0 < size < min(given, 1.0) / times
        if is_large or is_small:
            factor = size / max(given, 1.0) if is_large else min(given, 1.0) / size
            severity: Severity = "warning" if factor > times**2 else "remark"
            words = {"size": f"{size:.2g}", "given": f"{given:.2g}"}
            self._findings.say("targets_out_of_scale", 0, severity=severity, words=words)

    def _say_chance(self, loss: str) -> None:
        """Report outputs that explain nothing of the targets, reading after reading."""
        first, last = self._ratios[0][0], self._ratios[-1][0]
        ratios = [ratio for _, ratio in self._ratios]
        mean = sum(ratios) / N_READINGS
        if len(ratios) < N_READINGS or not (0.97 < mean < 1.2 and min(ratios) > 0.93):
            return
        if last - first >= self._findings.threshold("no_better_than_constant", "span"):
            kind = (
                "the variance of the targets"
                if loss in OF_SQUARES
                else "the entropy of the share of ones"
            )
            words = {"kind": kind, "first": first, "n": N_READINGS}
            self._findings.say("no_better_than_constant", last, since=first, words=words)


def _ends(root: Node) -> _Ends | None:
    """Return what a loss compares; None if its graph does not say."""
    for node in links(root):
        name = node.name()
        if name in (*OF_SQUARES, OF_LOGITS, OF_PROBABILITIES):
            given = node.next_functions[0][0]
            activation = past_shapes(given)
            if len(node.next_functions) > 1 and node.next_functions[1][0] is not None:
                return None  # targets that are learned themselves
            kind = "" if activation is None else activation.name()
            return _same_shape(name, saved_tensor(node, "self"), saved_tensor(node, "target"), kind)
        if name in ("PowBackward0", "AbsBackward0"):
            return _of_difference(node)
    return None


def _of_difference(node: Node) -> _Ends | None:
    """Return what a difference compares whose square or absolute value is the loss.

    The output is known where the last operation has saved it. What a linear layer has saved is not
    read to compute it again: in a checkpoint that would run the layers again.
    """
    difference = _difference(node)
    if difference is None:
        return None
    sides = [one for one, _ in difference.next_functions]
    activation = past_shapes(sides[0] or sides[1])
    output = None if activation is None else saved_tensor(activation, "result")
    made = saved_tensor(node, "self")
    if activation is None or output is None or made is None or output.numel() != made.numel():
        return None
    output = output.reshape(made.shape)
    targets = output - made if sides[0] is not None else output + made
    return _Ends("MseLossBackward0", output, targets, activation.name())


def _difference(node: Node) -> Node | None:
    """Return the difference with targets that a square or absolute value is of."""
    if node.name() not in ("PowBackward0", "AbsBackward0"):
        return None
    if node.name() == "PowBackward0" and getattr(node, "_saved_exponent", None) != 2:
        return None
    difference = past_shapes(node.next_functions[0][0])
    if difference is None or difference.name() != "SubBackward0":
        return None
    sides = [one for one, _ in difference.next_functions]
    is_with_targets = len(sides) == 2 and (sides[0] is None) != (sides[1] is None)
    return difference if is_with_targets else None


def links(root: Node, most: int = MOST_LINKS) -> Iterator[Node]:
    """Yield at most so many nodes from the loss on, as long as each takes one result alone."""
    node: Node | None = root
    for _ in range(most):
        if node is None:
            return
        yield node
        following = [one for one, _ in node.next_functions if one is not None]
        node = following[0] if len(following) == 1 else None


def saved_tensor(node: Node, name: str) -> Tensor | None:
    """Return a plain tensor that a node has saved for its backward; None without one."""
    value = getattr(node, f"_saved_{name}", None)
    is_plain = isinstance(value, Tensor) and type(value.data) is Tensor and not value.is_meta
    return value if is_plain else None


def _same_shape(
    loss: str, output: Tensor | None, targets: Tensor | None, activation: str
) -> _Ends | None:
    if output is None or targets is None or output.shape != targets.shape:
        return None
    is_real = output.is_floating_point() and targets.is_floating_point()
    return _Ends(loss, output, targets, activation) if is_real else None


def _range(ends: _Ends) -> tuple[float, float, str, float]:
    """Return the range of the outputs, what has it, and which part of it is far outside."""
    if ends.loss in (OF_LOGITS, OF_PROBABILITIES):  # soft labels up to 1.2 are in use
        return 0.0, 1.0, "the binary cross entropy", 0.5
    low, high, name = BOUNDS.get(ends.activation, (-INFINITE, INFINITE, ""))
    return low, high, name, 0.25


def _ratio(loss: str, output: Tensor, targets: Tensor) -> Tensor:
    """Return the loss as a multiple of that of the best constant; NaN if it is of another kind."""
    if loss == OF_LOGITS:
        share = targets.mean().clamp(0.01, 0.99)
        best = F.binary_cross_entropy(share, share)
        found = F.binary_cross_entropy_with_logits(output, targets) / best
        return torch.where((share > 0.2) & (share < 0.8), found, math.nan)
    if loss == "MseLossBackward0":
        columns = targets.reshape(len(targets), -1)
        best = (columns - columns.mean(0)).square().mean()
        return torch.where(best > 0, (output - targets).square().mean() / best, math.nan)
    return torch.full_like(targets[..., :1].sum(), math.nan)
