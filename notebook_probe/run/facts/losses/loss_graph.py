"""Facts about a loss, read from its autograd graph when it can have changed.

Names of nodes are torch's own: an unknown one says nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.autograd.graph import Node

from notebook_probe.alerts.rule import Severity
from notebook_probe.examine.checks.losses import TWICE, node_pairs
from notebook_probe.probes.step.phase import own_call
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.batch_softmax import shape_of, softmax_over_batch
from notebook_probe.run.facts.losses.class_targets import ClassTargets, are_of_a_list
from notebook_probe.run.facts.losses.dropped_outputs import DroppedOutputs
from notebook_probe.run.facts.losses.linear_stacks import n_stacked
from notebook_probe.run.facts.losses.log_losses import LogLosses
from notebook_probe.run.facts.losses.loss_ends import LONGEST_CHAIN, LossEnds, links
from notebook_probe.run.facts.losses.negations import is_in_front, negation
from notebook_probe.run.facts.losses.repeated_passes import RepeatedPasses
from notebook_probe.run.facts.losses.token_targets import TokenTargets
from notebook_probe.run.facts.losses.triplets import TripletOrder
from notebook_probe.run.facts.parameters import learns_its_input

__all__ = ["LossGraph"]

READ_AT: frozenset[int] = frozenset(
    {0, 1, 10, 50, 100, 150, 200, 250, 300, 400, 500, 700, 1000, 3000, 10_000}
)
"""Steps at which a graph is read; and each first one after a change of the model."""
MOST_PASSES = 4
"""Passes of such a step that are read: of several networks, or of several losses."""
MOST_NODES = 5000
FAR_BELOW = 0.1
"""Share of the loss of guessing that no network has which has not learned."""
DIFFERENCES = ("SubBackward0", "MseLossBackward0", "L1LossBackward0", "SmoothL1LossBackward0")


class LossGraph:
    """Facts about the graph on which ``backward()`` is called.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        context.observer.steps.look_before |= READ_AT
        self._modules, self._findings = context.modules, context.findings
        self._ends, self._spend = LossEnds(context), context.spend
        self._logs, self._triplets = LogLosses(context), TripletOrder(context)
        self._dropped, self._tokens = DroppedOutputs(context), TokenTargets(context)
        self._passes, self._given = RepeatedPasses(context), context.given_tokens
        self._model, self._updates = context.model, context.observer.updates
        self._later = context.later
        self._steps, self._clock = context.observer.steps, context.observer.clock
        self._read_in, self._n_read = -1, 0
        self._made: dict[int, Tensor] = {}
        self._n_negated = 0
        self._is_in_front = False
        self.listens = False
        """The graph of the next pass is to be read."""
        self.n_classes = 0
        """Classes of a cross entropy; 0 if the loss is another one."""
        self.is_of_list = False
        """The classes are the places of a list, as in a contrast with many negatives."""
        self.targets = ClassTargets(context.later)
        self.may_rise = False
        """The loss may rise from its first value though nothing is wrong."""
        self.wanted: set[int] = set()
        """Identities of parameters of which it is to be known whether the loss reaches them."""
        self.reached: set[int] | None = None
        """Identities in `wanted` that the loss of a step has reached; None until it is known."""

    def close(self) -> None:
        """Read no more."""
        self.listens = False

    def look(self, step: int) -> None:
        """Learn before a step whether its graph is to be read."""
        self.listens = step in READ_AT or (bool(self.wanted) and self.reached is None)
        self._given.take()  # of a loss that was not read
        self._given.is_wanted = step in READ_AT
        self._n_read = 0

    def backward_begins(self, loss: object, roots: Sequence[Any]) -> None:
        """Read the graph, if it is one of this model."""
        self._findings.attempt(self._read_roots, roots)
        self._findings.attempt(self._passes.begins, roots, self._clock.step)

    def _read_roots(self, roots: Sequence[Any]) -> None:
        if self._steps.ignores_updates:
            return
        step = self._clock.step
        if self._n_read and step != self._read_in:  # the next step is not to be read
            self.listens = False
            return
        modules = self._modules()
        known = {id(one) for module in modules.values() for one in module._parameters.values()}
        is_first, has_read = not self._n_read, False
        for root in roots:
            if isinstance(root, Tensor) and root.grad_fn is not None:
                nodes = _nodes(root.grad_fn)
                leaves = dict(_leaves(nodes))
                if not leaves.keys() & known:
                    continue
                self._read_in, has_read = step, True
                if is_first:
                    self._read_first(root, modules, known, leaves, nodes)
                    self._read_value(root)
                    self._look_at_products(nodes)
                else:
                    self._read_ends(root)
        self._n_read += has_read
        self.listens = self._n_read < MOST_PASSES

    def _read_first(
        self,
        loss: Tensor,
        modules: Mapping[str, nn.Module],
        known: set[int],
        leaves: Mapping[int, Tensor],
        nodes: Sequence[Node],
    ) -> None:
        """Read the graph of a step's first pass; later ones may be of other networks, too."""
        if self.wanted:
            self.reached = self.wanted & leaves.keys()
        self._is_in_front = is_in_front(nodes, known)
        with own_call():  # a checkpoint calls its modules again for what it has not kept
            if (root := loss.grad_fn) is not None:
                self._read(loss, root)
                self._ends.read(root, self._read_in)
                self._triplets.read(root, self._read_in)
        self._look_for_strangers(modules, known, leaves)

    def backward_ends(self, begun: None, since: float, *, has_come_through: bool) -> None:
        """Implement the BackwardListener: count the time of a look at the graph."""
        self._findings.attempt(self._passes.ends)
        self._spend(time.perf_counter() - since)

    def _read(self, loss: Tensor, root: Node) -> None:
        readings = negation(root)
        self._n_negated = self._n_negated + 1 if readings else 0
        if readings and self._n_negated >= readings:
            # A perturbation of the input is learned to make the loss of a network worse.
            self.may_rise |= (is_attack := self.learns_its_input())
            severity: Severity | None = "remark" if is_attack else None
            self._findings.say("negated_loss", self._read_in, severity=severity)
        self._read_ends(loss)
        n_linear = n_stacked(root)
        if n_linear > 1:
            self._findings.say("affine_network", self._read_in, words={"n": n_linear})
        of_classes = _of_classes(root)
        if of_classes is not None:
            self.n_classes = _n_classes(of_classes) or self.n_classes
            self.is_of_list = are_of_a_list(of_classes)
            self.targets.read(of_classes)
            self._tokens.read(of_classes, root, self._read_in)

    def _read_value(self, loss: Tensor) -> None:
        """Read the first loss of a contrast: a queue of keys is random until it was filled."""
        of_classes = None if self._read_in or loss.numel() != 1 else _of_classes(loss.grad_fn)
        if of_classes is not None and are_of_a_list(of_classes):
            self._later.read([loss.detach().double()], self._judge_value)

    def jumped(self, loss: Tensor) -> None:
        """Read the classes of a batch whose loss is far above all before it."""
        of_classes = _of_classes(loss.grad_fn)
        if of_classes is not None:
            self.targets.jumped(of_classes, self._clock.step)

    def _judge_value(self, read: Sequence[Any]) -> None:
        self.may_rise |= read[0] < FAR_BELOW * math.log(max(1, self.n_classes))

    def learns_its_input(self) -> bool:
        """Return whether a prompt or a perturbation is trained in front of a whole network."""
        model = self._model()
        return self._is_in_front or (
            model is not None and learns_its_input(model, self._updates.optimizers)
        )

    def _read_ends(self, loss: Tensor) -> None:
        """Read what a loss takes, and of which shapes."""
        step, say, root = self._read_in, self._findings.say, loss.grad_fn
        if root is None:
            return
        taken = [*node_pairs(root)]
        pairs = {(above.name(), below.name()) for above, below in taken}
        for pair, text in TWICE.items():
            if pair in pairs:
                say("activation_before_loss", step, words={"what": text})
        self._logs.read(loss, taken, step)
        self._dropped.read(taken, step)
        shapes = _broadcast(root)
        if shapes is not None:
            words = dict(zip(("given", "other", "made"), shapes, strict=True))
            say("broadcast_loss", step, words=words)

    def _look_at_products(self, nodes: Iterable[Node]) -> None:
        """Look for an attention whose weights sum to one over the samples."""
        shape = softmax_over_batch(nodes)
        if shape is not None:
            words = {"shape": str(shape), "taker": "an attention", "over": "the samples"}
            words |= {"but": "and a product weighs with it within each of them", "dim": "-1"}
            self._findings.say("softmax_dimension", self._read_in, words=words)

    def _look_for_strangers(
        self, modules: Mapping[str, nn.Module], known: set[int], leaves: Mapping[int, Tensor]
    ) -> None:
        """Find parameters that the loss depends on and the model does not have."""
        strangers = {key for key, one in leaves.items() if key not in known}
        for path, name, module in _kept_in_containers(modules):
            lost = [one for one in module.parameters() if id(one) in strangers]
            if lost:
                owner = f"self.{name}"
                words = {"owner": owner, "n": len(lost), "kind": type(module).__name__}
                self._findings.say("unregistered_layers", self._read_in, [path], words=words)
                return
        made: dict[int, Tensor] = {
            key: one
            for key, one in leaves.items()
            if key in strangers and isinstance(one, nn.Parameter)
        }
        before, self._made = self._made, {}
        again = sorted({*_shapes(made)} & {*_shapes(before)})
        if again and not made.keys() & before.keys():
            self._findings.say("layers_made_in_forward", self._read_in, words={"shape": again[0]})
        if not before:  # held until the next look, so that no other one gets their identities
            self._made = made if self._read_in == 0 else {}


def _shapes(parameters: Mapping[int, Tensor]) -> list[tuple[int, ...]]:
    return [tuple(one.shape) for one in parameters.values()]


def _nodes(root: Node) -> list[Node]:
    """Return the nodes of a graph; none of one that is large."""
    waiting, seen, found = [root], {root}, []
    while waiting:
        node = waiting.pop()
        found.append(node)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
        if len(seen) > MOST_NODES:
            return []
    return found


def _leaves(nodes: Iterable[Node]) -> Iterator[tuple[int, Tensor]]:
    """Yield the leaves that a gradient would reach, by identity."""
    for node in nodes:
        variable = getattr(node, "variable", None)
        if variable is not None:
            yield id(variable), variable


def _kept_in_containers(modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, str, nn.Module]]:
    """Yield the modules in plain lists, tuples and dicts of the modules of a model."""
    for path, module in modules.items():
        for name, value in vars(module).items():
            if name.startswith("_") and name in ("_modules", "_parameters", "_buffers"):
                continue
            parts = value.values() if type(value) is dict else value
            if type(value) in (list, tuple, dict):
                yield from ((path, name, one) for one in parts if isinstance(one, nn.Module))


def _broadcast(root: Node) -> tuple[str, str, str] | None:
    """Return the shapes of a difference of (N, 1) and (N,), which is (N, N); None without one."""
    for node in links(root, LONGEST_CHAIN):
        if not node.name().startswith(DIFFERENCES):
            continue
        given = [shape_of(one) for one, _ in node.next_functions if one is not None]
        if node.name() != "SubBackward0":  # the loss has broadcast what it got
            expanded = [one for one, _ in node.next_functions if one is not None]
            is_expanded = any(one.name() == "ExpandBackward0" for one in expanded)
            inside = [n for one in expanded for n, _ in one.next_functions if n is not None]
            below = [*map(shape_of, inside)]
            given, made = below, given[0] if given and is_expanded else ()
        else:
            made = shape_of(node)
        for shape in given:
            if _is_outer(shape, made):
                return str(shape), f"({made[-1]},)", str(made)
    return None


def _is_outer(given: tuple[int, ...], made: tuple[int, ...]) -> bool:
    """Return whether a vector became a square table of all pairs."""
    is_square = len(made) == 2 and made[0] == made[1] > 1
    return is_square and given in ((made[0], 1), (made[0],))


def _of_classes(root: Node | None) -> Node | None:
    """Return the node of a cross entropy."""
    return (
        None
        if root is None
        else next(
            (one for one in links(root, LONGEST_CHAIN) if one.name().startswith("NllLoss")), None
        )
    )


def _n_classes(of_classes: Node) -> int:
    given = of_classes.next_functions[0][0]
    shape = shape_of(given) if given is not None else ()
    return int(shape[1]) if len(shape) > 1 else 0
