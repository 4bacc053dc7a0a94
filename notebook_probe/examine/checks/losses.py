"""Check that the loss fits the outputs of the model and the targets."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.checks.values import are_classes, past_shapes
from notebook_probe.examine.findings import Finding
from notebook_probe.examine.subject import Subject

__all__ = [
    "LINEAR",
    "TWICE",
    "chance_level",
    "loss_takes_logits",
    "loss_uses_targets",
    "node_pairs",
    "pairs_of",
]

CHECK = "loss"
FAR = 3.0
"""Times the loss of guessing, from where on the last layer begins too large."""
ENOUGH = 1e-6
"""Share of a loss: less is rounding."""
MOST_NODES = 200
"""Nodes of the graph of a loss that are looked at; what is wrong with a loss is near its end."""

LINEAR = ("AddmmBackward0", "MmBackward0", "ConvolutionBackward0")
"""Nodes of layers whose results have any size."""
TWICE = {
    ("LogSoftmaxBackward0", "SoftmaxBackward0"): "cross_entropy takes logits, and gets a softmax",
    ("BinaryCrossEntropyWithLogitsBackward0", "SigmoidBackward0"): (
        "binary_cross_entropy_with_logits takes logits, and gets a sigmoid"
    ),
    ("LogSoftmaxBackward0", "SigmoidBackward0"): "cross_entropy takes logits, and gets a sigmoid",
    ("BinaryCrossEntropyWithLogitsBackward0", "SoftmaxBackward0"): (
        "binary_cross_entropy_with_logits takes logits, and gets a softmax"
    ),
    ("LogSoftmaxBackward0", "ReluBackward0"): (
        "cross_entropy takes logits, which may be below 0, and gets a ReLU"
    ),
    ("BinaryCrossEntropyWithLogitsBackward0", "ReluBackward0"): (
        "binary_cross_entropy_with_logits takes logits, which may be below 0, and gets a ReLU"
    ),
}
"""Mistakes by pair of nodes: the second one gives its result to the first one."""


def loss_takes_logits(subject: Subject) -> Iterator[Finding]:
    """Read the graph of the loss: which operation takes which."""
    trained = subject.trained
    if trained is None or trained.loss.grad_fn is None:
        return
    pairs = set(pairs_of(trained.loss.grad_fn))
    found = [text for pair, text in TWICE.items() if pair in pairs]
    for text in found:
        yield Finding(CHECK, "wrong", text, "return logits, without a last activation")
    if ("NllLossBackward0", "SoftmaxBackward0") in pairs:
        text = "nll_loss takes log-probabilities, and gets probabilities"
        yield Finding(CHECK, "wrong", text, "F.cross_entropy(logits, targets)")
    elif not found:
        yield Finding(
            CHECK, "good", "no activation comes twice between the last layer and the loss"
        )


def pairs_of(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the name of each node and of what it takes, as `node_pairs`."""
    yield from ((one.name(), taken.name()) for one, taken in node_pairs(node))


def node_pairs(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield each node with what it takes, past changes of shape, those next to the loss first."""
    waiting, seen = deque([node]), set[Node]()
    while waiting and len(seen) < MOST_NODES:
        one = waiting.popleft()  # one term of a sum may have a network behind it, and hide another
        if one in seen:
            continue
        seen.add(one)
        for following in map(past_shapes, (given for given, _ in one.next_functions)):
            if following is not None:
                yield one, following
                waiting.append(following)


def loss_uses_targets(subject: Subject) -> Iterator[Finding]:
    """Give the loss random outputs, and shuffle the targets among the samples.

    A loss that stays the same compares each output with all targets, as where a difference of
    shapes (N, 1) and (N,) is broadcast to (N, N), or with none.
    """
    output, targets = subject.plain_output, subject.targets
    if subject.loss is None or output is None or not isinstance(targets, Tensor):
        return
    if not targets.ndim or len(targets) != len(output) or bool((targets == targets[:1]).all()):
        return
    losses = _of_random_outputs(subject, output, targets)
    if losses is None:
        yield Finding("targets", "unknown", "the loss takes no output made of random numbers")
    elif abs(losses[0] - losses[1]) > ENOUGH * abs(losses[0]):
        yield Finding("targets", "good", "the loss compares each output with its own target")
    elif output.numel() == targets.numel() and output.shape != targets.shape:
        text = (
            f"output {tuple(output.shape)} and targets {tuple(targets.shape)} are broadcast: the "
            f"loss compares each output with all targets"
        )
        yield Finding("targets", "wrong", text, "targets = targets.view_as(output)")
    else:
        text = "the loss stays the same where targets are shuffled among samples"
        yield Finding("targets", "note", text)


def _of_random_outputs(
    subject: Subject, output: Tensor, targets: Tensor
) -> tuple[float, float] | None:
    assert subject.loss is not None
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(output.shape, generator=generator).to(output)
    # A loss may take logits, probabilities or their logarithms.
    for made in (noise, torch.sigmoid(noise), torch.log_softmax(noise, -1)):
        try:
            found = [float(subject.loss(made, one)) for one in (targets, targets.roll(1, 0))]
        except Exception:  # it takes outputs of another kind, such as probabilities
            continue
        if all(map(math.isfinite, found)):
            return found[0], found[1]
    return None


def chance_level(subject: Subject) -> Iterator[Finding]:
    """Compare the first loss with that of guessing, where targets are classes."""
    output, targets = subject.plain_output, subject.targets
    with torch.no_grad():
        loss = subject.loss_of(subject.evaluated)
    if output is None or loss is None or loss.ndim or not are_classes(targets, output):
        return
    if not _is_cross_entropy(subject, output):
        return
    n_classes, found = output.shape[1], float(loss)
    if not math.isfinite(found):
        return  # which the gradients say
    guessing = math.log(n_classes)
    text = f"the first loss is {found:.3g}; guessing among {n_classes} classes has {guessing:.3g}"
    if found > FAR * guessing:
        advice = "smaller initial weights in the last layer"
        yield Finding("first loss", "note", text, advice)
    else:
        yield Finding("first loss", "good", text)


def _is_cross_entropy(subject: Subject, output: Tensor) -> bool:
    trained = subject.trained
    node = trained.loss.grad_fn if trained is not None else None
    return node is not None and node.name().startswith("NllLoss")
