"""Facts about losses of log-probabilities: what they get, and over which dimension it sums to one.

``F.kl_div`` is no node: it is ``targets.xlogy(targets) - targets * input``, or with log_target
``targets.exp() * (targets - input)``. That the factor is a distribution tells it from other
differences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.checks.losses import LINEAR
from notebook_probe.examine.checks.values import past_shapes
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.batch_softmax import dimension_of
from notebook_probe.run.facts.losses.loss_ends import OF_PROBABILITIES, OF_SQUARES, saved_tensor

__all__ = ["LogLosses"]

NO_LOG, DIMENSION = "no_log_before_nll", "softmax_dimension"
LOGS = "log-probabilities"
SOFTMAX, LOG_SOFTMAX = "SoftmaxBackward0", "LogSoftmaxBackward0"
GIVES = {SOFTMAX: "probabilities", **dict.fromkeys(LINEAR, "numbers of any size")}
"""Results of nodes in front of a loss that are no log-probabilities, in words."""
BETWEEN = ("LogBackward0", "AddBackward0", "ClampBackward1", "ClampMinBackward0")
"""Nodes between a softmax and a loss that takes its logarithm."""
SUMS = ("Mean", "Sum", "Mul", "Div", "Add", "Sub", "Neg", "Index", "MaskedSelect", "Stack", "Cat")
"""Nodes whose result is a weighted sum of what they take."""
MOST_BEHIND = 30
"""Nodes in front of a CTC loss among which a logarithm is looked for."""
CLOSE, FAR = 0.02, 0.1
"""Distance of a sum from one: of a distribution in half precision, and of none."""


@dataclass(frozen=True)
class _Divergence:
    """Parts of a Kullback-Leibler divergence.

    Attributes
    ----------
    given : Node
        Operation that made the input.
    factor : Tensor
        Targets; with log_target their exponential.
    is_of_logs : bool
        True with log_target.
    """

    given: Node
    factor: Tensor
    is_of_logs: bool


class LogLosses:
    """Facts about likelihoods and divergences, at each reading of a graph.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._say, self._later = context.findings.say, context.later
        self._value = torch.zeros(())

    def read(self, loss: Tensor, taken: Sequence[tuple[Node, Node]], step: int) -> None:
        """Read the nodes near a loss, each with what it takes, on the training thread."""
        root, self._value = loss.grad_fn, loss.detach()
        if root is None:
            return
        for node in dict.fromkeys(above for above, _ in taken):
            if node.name().startswith("NllLoss"):
                self._read_likelihood(node, step)
            elif node.name() == "CtcLossBackward0":
                self._read_alignment(node, step)
        for node in _terms(root, taken):
            if node.name() in ("SubBackward0", "MulBackward0"):
                self._read_divergence(node, step)
            self._read_dimension(node, step)

    # ---------------------------------------------------------------- no logarithm

    def _read_likelihood(self, node: Node, step: int) -> None:
        given = past_shapes(node.next_functions[0][0])
        what = "" if given is None else GIVES.get(given.name(), "")
        if what:
            self._say_no_log(step, "nll_loss", what, "call F.cross_entropy(logits, targets)")
        softmax = _softmax_below(node.next_functions[0][0])
        made, taken = _result(softmax), saved_tensor(node, "self")
        # Over a table of all pairs both dimensions are right, one for each direction.
        if softmax is None or made is None or taken is None or made.shape != taken.shape:
            return
        dim = dimension_of(softmax, made.ndim)
        if made.ndim > 1 and dim != 1 and made.shape[dim] != made.shape[1] > 1:
            self._say_dimension(step, made, dim)

    def _read_alignment(self, node: Node, step: int) -> None:
        """Read a CTC loss whose input no logarithm is behind; one less a prior has one."""
        given = saved_tensor(node, "log_probs")
        behind = None if given is None else _first_that_makes(node.next_functions[0][0])
        if given is not None and behind is not None:
            off = given.detach().float().logsumexp(-1).abs().mean()
            self._later.read([off], partial(self._judge_alignment, step, behind))

    def _judge_alignment(self, step: int, what: str, read: Sequence[Any]) -> None:
        if read[0] > FAR:
            mend = "call F.ctc_loss(logits.log_softmax(-1), ...)"
            self._say_no_log(step, "ctc_loss", what, mend)

    def _read_divergence(self, node: Node, step: int) -> None:
        parts = _divergence(node)
        made = None if parts is None else _result(parts.given)
        if parts is None or not (made is None or made.shape == parts.factor.shape):
            return
        name, factor = parts.given.name(), parts.factor.detach().float()
        dim = -1 if made is None else dimension_of(parts.given, made.ndim)
        if name in GIVES:
            judge = partial(self._judge_divergence, step, GIVES[name])
            self._later.read([_off(factor, dim), factor.amin(), factor.amax()], judge)
        if name in (SOFTMAX, LOG_SOFTMAX):
            other = factor.log() if parts.is_of_logs else factor.exp()
            judge = partial(self._judge_targets, step, is_of_logs=parts.is_of_logs)
            self._later.read([_off(other, dim), other.amin(), other.amax()], judge)

        if name == LOG_SOFTMAX and not parts.is_of_logs:
            read = [factor.amin(), factor.amax(), self._value.double().sum()]
            self._later.read(read, partial(self._judge_sign, step))

    def _judge_sign(self, step: int, read: Sequence[Any]) -> None:
        """Judge targets below 0, of which a divergence takes the logarithm: the loss is NaN."""
        lowest, highest, loss = read
        if lowest < 0 and math.isnan(loss):
            mend = "pass targets.softmax(-1), or targets.log_softmax(-1) with log_target=True"
            what = f"numbers from {lowest:.3g} to {highest:.3g}, such as logits"
            self._say_no_log(step, "kl_div", what, mend, "probabilities as targets")

    def _judge_divergence(self, step: int, what: str, read: Sequence[Any]) -> None:
        off, lowest, _ = read
        if off < CLOSE and lowest >= 0:
            mend = "call F.kl_div(logits.log_softmax(1), targets)"
            self._say_no_log(step, "kl_div", what, mend)

    def _judge_targets(self, step: int, read: Sequence[Any], *, is_of_logs: bool) -> None:
        """Judge targets as if log_target had the other value: then they are distributions."""
        off, lowest, highest = read
        if not (off < CLOSE and lowest >= 0 and highest <= 1 + CLOSE):
            return
        if is_of_logs:
            mend, wanted = "leave out log_target, or pass targets.log()", f"{LOGS} as targets"
            loss, what = "kl_div with log_target=True", "probabilities"
        else:
            mend, wanted = "pass log_target=True", "probabilities as targets"
            loss, what = "kl_div", "their logarithms"
        self._say_no_log(step, loss, what, mend, wanted)

    def _say_no_log(self, step: int, loss: str, what: str, mend: str, wanted: str = LOGS) -> None:
        words = {"loss": loss, "wanted": wanted, "what": what, "mend": mend}
        self._say(NO_LOG, step, words=words)

    # ---------------------------------------------------------------- dimensions

    def _read_dimension(self, node: Node, step: int) -> None:
        """Compare a softmax over the samples with targets that are distributions over classes."""
        softmax, targets = _compared(node)
        made = _result(softmax)
        if softmax is None or made is None or targets is None or made.shape != targets.shape:
            return
        if made.ndim != 2 or dimension_of(softmax, made.ndim) or made.shape[0] == made.shape[1]:
            return
        wanted = targets.detach().float()
        read = [_off(wanted, 1), _off(wanted, 0), wanted.amin()]
        self._later.read(read, partial(self._judge_dimension, step, made.detach()))

    def _judge_dimension(self, step: int, made: Tensor, read: Sequence[Any]) -> None:
        over_classes, over_samples, lowest = read
        if over_classes < CLOSE and over_samples > FAR and lowest >= 0 and made.shape[1] > 1:
            self._say_dimension(step, made, 0)

    def _say_dimension(self, step: int, made: Tensor, dim: int) -> None:
        over = "the samples" if dim == 0 else f"dimension {dim}"
        words = {"over": over, "shape": str(tuple(made.shape)), "taker": "the loss", "dim": "1"}
        words["but"] = f"and the {made.shape[1]} classes are dimension 1"
        self._say(DIMENSION, step, words=words)


def _terms(root: Node, taken: Sequence[tuple[Node, Node]]) -> list[Node]:
    """Return the nodes that a loss is a weighted sum of: what is squared is no divergence."""
    terms = {root: None}
    for above, below in taken:
        if above in terms and above.name().startswith(SUMS):
            terms[below] = None
    return [*terms]


def _divergence(node: Node) -> _Divergence | None:
    """Return the parts of a divergence; None if the node is none."""
    if len(node.next_functions) < 2:
        return None
    (first, _), (second, _) = node.next_functions
    if node.name() == "SubBackward0":
        product = past_shapes(second)
        is_one = first is None or first.name() == "XlogyBackward0"
        below, factored = product, product
        is_of_logs = False
    else:
        is_one, is_of_logs = first is None, True
        below, factored = past_shapes(second), node
    wanted = "SubBackward0" if is_of_logs else "MulBackward0"
    if not is_one or below is None or factored is None or below.name() != wanted:
        return None
    if is_of_logs and below.next_functions[0][0] is not None:
        return None
    given, factor = past_shapes(below.next_functions[1][0]), saved_tensor(factored, "self")
    if given is None or factor is None or factor.ndim < 2 or not factor.is_floating_point():
        return None
    return _Divergence(given, factor, is_of_logs)


def _compared(node: Node) -> tuple[Node | None, Tensor | None]:
    """Return the softmax that a loss takes, and the constant that it compares or weighs it with."""
    if node.name() in (*OF_SQUARES, OF_PROBABILITIES):
        return _softmax_below(node.next_functions[0][0]), saved_tensor(node, "target")
    if node.name() != "MulBackward0" or len(node.next_functions) < 2:
        return None, None
    (first, _), (second, _) = node.next_functions
    if (first is None) == (second is None):
        return None, None
    other = saved_tensor(node, "self" if first is None else "other")
    return _softmax_below(first or second), other


def _softmax_below(node: Node | None) -> Node | None:
    """Return the softmax that a node is, or takes the logarithm of."""
    for _ in range(len(BETWEEN)):
        node = past_shapes(node)
        if node is None or node.name() not in BETWEEN:
            break
        live = [one for one, _ in node.next_functions if one is not None]
        node = live[0] if len(live) == 1 else None
    return node if node is not None and node.name() in (SOFTMAX, LOG_SOFTMAX) else None


def _first_that_makes(node: Node | None) -> str | None:
    """Return what a layer or a softmax gives, if no logarithm is taken of it on the way."""
    waiting, found = [node], ""
    for one in waiting:
        if len(waiting) > MOST_BEHIND:
            return None
        name = "" if one is None else one.name()
        if name.startswith("Log"):
            return None
        found = found or GIVES.get(name, "")
        if one is not None and name not in GIVES:
            waiting.extend(following for following, _ in one.next_functions)
    return found or None


def _result(softmax: Node | None) -> Tensor | None:
    is_one = softmax is not None and softmax.name() in (SOFTMAX, LOG_SOFTMAX)
    return saved_tensor(softmax, "result") if softmax is not None and is_one else None


def _off(given: Tensor, dim: int) -> Tensor:
    """Return how far sums are from one, on average."""
    return (given.sum(dim) - 1).abs().mean()
