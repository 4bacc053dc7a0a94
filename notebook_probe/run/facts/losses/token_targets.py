"""Facts about targets of tokens: the inputs themselves, or padding that the loss counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.examine.checks.values import SHAPES
from notebook_probe.run.facts.context import FactContext
from notebook_probe.run.facts.losses.batch_softmax import shape_of
from notebook_probe.run.facts.losses.class_targets import ignored_index
from notebook_probe.run.facts.losses.loss_ends import LONGEST_CHAIN, links

__all__ = ["TokenTargets"]

SHIFTED, PADDED, IGNORED = "targets_shifted", "padding_counted", "class_ignored"
OFFSETS = (-1, 0, 1, 2)
"""Distances, in tokens, between an input and the target that it may be."""
FEWEST, FEWEST_ROWS = 16, 4
"""Tokens that are compared, and rows whose ends are."""
SIDES = ("ends", "beginnings")
FEWEST_OTHERS = 8
"""Different targets before the padding: fewer may be states that are passed one after another."""
N_READINGS, N_IGNORED = 2, 3
"""Readings in a row that show the same."""
KEEPING = {
    *("SliceBackward0", "LogSoftmaxBackward0", "CloneBackward0", "ToCopyBackward0"),
    "AliasBackward0",
}
"""Nodes that take tokens from a table and leave their order as it is."""
MOST_NODES = 8
"""Nodes in front of a cross entropy among which the shape of tokens is looked for."""
WORDS = {
    -1: (
        "the token before it",
        "unless the model is to repeat it, logits[:, :-1] and inputs[:, 1:] belong together",
    ),
    0: (
        "the input at the same place, so that the model can copy it; in a language model "
        "logits[:, :-1] and inputs[:, 1:] belong together; in an autoencoder, or where the model "
        "shifts its inputs itself, this is right",
        "",
    ),
    2: (
        "the token after the next one: the targets are shifted twice, unless this is what the "
        "model is to predict",
        "pass labels that are not shifted to a model that shifts them itself",
    ),
}
"""Descriptions of a target and of the line to change, by the offset."""


@dataclass
class _Table:
    """Tokens that a loss takes, as a part of all that the model has returned.

    Attributes
    ----------
    shape : tuple of int
        Rows, and tokens of each.
    whole : list of int
        The same of what the model has returned.
    start : list of int
        First one of both that the loss takes.
    token_dim : int
        Dimension of the tokens, 2 where the classes come before them.
    """

    shape: tuple[int, int]
    whole: list[int]
    start: list[int]
    token_dim: int

    @classmethod
    def of(cls, n_rows: int, n_tokens: int, token_dim: int = 1) -> _Table:
        """Return a table that is taken as a whole."""
        return cls((n_rows, n_tokens), [n_rows, n_tokens], [0, 0], token_dim)

    def follow(self, node: Node) -> bool:
        """Take account of a node behind the table; return whether the next one is of it, too."""
        name = node.name()
        if name == "TransposeBackward0":
            is_of_classes, self.token_dim = self.token_dim == 2, 1
            return is_of_classes
        if name == "SliceBackward0":
            dims = {0: 0, self.token_dim: 1}
            dim = node._saved_dim  # type: ignore[attr-defined]
            if dim in dims:
                size = node._saved_self_sym_sizes[dim]  # type: ignore[attr-defined]
                self.whole[dims[dim]] = size
                begin = node._saved_start or 0  # type: ignore[attr-defined]
                # torch returns a negative number without its sign.
                self.start[dims[dim]] += begin if begin < 2**63 else begin - 2**64 + size
        return name in KEEPING


class TokenTargets:
    """Facts about the targets of a cross entropy of tokens, in the first readings.

    Parameters
    ----------
    context : FactContext
    """

    def __init__(self, context: FactContext) -> None:
        self._findings, self._later = context.findings, context.later
        self._given = context.given_tokens
        self._offsets: list[int | None] = []
        self._padding: list[int | None] = []
        self._ignored: list[float] = []

    def read(self, of_classes: Node, root: Node, step: int) -> None:
        """Compare the targets with the inputs of the call, on the training thread.

        ``root`` is the node of the loss, which is made of the cross entropy.
        """
        given = self._given.take()
        targets = getattr(of_classes, "_saved_target", None)
        if type(targets) is not Tensor or targets.is_meta or targets.numel() < FEWEST:
            return
        ignored, table = ignored_index(of_classes), _table(of_classes, targets.numel())
        is_table = table is not None and table.shape[0] >= FEWEST_ROWS and table.shape[1] > 1
        # Frames have no padding by number.
        if table is not None and is_table and given.takes_any and _counts_each(of_classes, root):
            rows = targets.reshape(table.shape)
            read = [*_ends(rows, ignored, of_classes), *_ends(rows.flip(1), ignored, of_classes)]
            self._later.read(read, partial(self._judge_ends, step))
        scores = _scores(of_classes)
        # Pixels, points and frames are more; among them, 0 is often what is unknown.
        is_of_samples = table is None and len(scores) == 2 and targets.numel() == given.n_samples
        if is_of_samples and not given.takes_any and 0 <= ignored < scores[1]:
            read = [(targets == ignored).double().mean()]
            self._later.read(read, partial(self._judge_ignored, step, ignored))
        inputs = [one for one in given.tables if one.device == targets.device]
        if table is None and inputs and inputs[0].numel() == targets.numel():
            table = _Table.of(*inputs[0].shape)
        if table is not None and inputs and min(table.shape) > 1:
            read = _matches(inputs, targets.reshape(table.shape), table, ignored)
            self._later.read(read, partial(self._judge_offsets, step, given.are_inputs))

    def _judge_offsets(self, step: int, are_inputs: bool, read: Sequence[Any]) -> None:
        """Judge which tokens of the inputs all targets are; of several candidates one is right.

        Where labels may be among the inputs, targets are equal to them.
        """
        n = len(OFFSETS)
        found: list[list[int]] = []
        for first in range(0, len(read), 2 * n):  # of one input, along one dimension
            equal, known = read[first : first + n], read[first + n : first + 2 * n]
            found.append(
                [
                    offset
                    for offset, n_equal, n_known in zip(OFFSETS, equal, known, strict=True)
                    if n_equal == n_known >= FEWEST
                ]
            )
        matches = next((one for one in found if one), [])
        is_right = matches != [2] and any(1 in one for one in found)
        offset = matches[0] if len(matches) == 1 and not is_right else None
        offset = offset if offset or are_inputs else None
        self._offsets = [*self._offsets, offset][-N_READINGS:]
        if offset is not None and self._offsets == [offset] * N_READINGS:
            what, mend = WORDS[offset]
            words = {"what": what, "mend": f"; {mend}" if mend else ""}
            self._findings.say(SHIFTED, step, words=words)

    def _judge_ends(self, step: int, read: Sequence[Any]) -> None:
        """Judge one number at one end of rows of different length, and nowhere else."""
        half = len(read) // 2
        found = [self._padding_in(read[:half]), self._padding_in(read[half:])]
        side, both = next(((i, one) for i, one in enumerate(found) if one), (0, None))
        self._padding = [*self._padding, both and both[0]][-N_READINGS:]
        if both is not None and self._padding == [both[0]] * N_READINGS:
            words = {"share": f"{both[1]:.0%}", "value": both[0], "side": SIDES[side]}
            self._findings.say(PADDED, step, words=words)

    def _padding_in(self, read: Sequence[Any]) -> tuple[int, float] | None:
        """Return the number that fills rows up at their end, and its share of the targets."""
        last, n_ends, n_all, n_rows, shortest, longest, n, n_others, weight = read
        share = self._findings.threshold(PADDED, "share")
        is_at_ends = n_ends == n_all > share * n and n_rows > 0.5 and longest > max(1, shortest)
        is_padding = is_at_ends and n_others >= FEWEST_OTHERS and weight > 0
        return (int(last), n_all / n) if is_padding else None

    def _judge_ignored(self, step: int, ignored: int, read: Sequence[Any]) -> None:
        """Judge samples that are left out: of a class, neither most of them nor a rare few."""
        share = read[0]
        self._ignored = [*self._ignored, share][-N_IGNORED:]
        if len(self._ignored) == N_IGNORED and all(0 < one < 0.5 for one in self._ignored):
            words = {"share": f"{share:.0%}", "value": ignored}
            self._findings.say(IGNORED, step, words=words)


def _table(of_classes: Node, n: int) -> _Table | None:
    """Return where in the output of the model the scores are, if they came as a table of tokens."""
    found: _Table | None = None
    node: Node | None = of_classes
    for _ in range(MOST_NODES):
        following = [one for one, _ in node.next_functions if one is not None] if node else []
        node = following[0] if len(following) == 1 else None
        if node is None:
            break
        if found is None:
            found = _table_of(shape_of(node), n)
        if found is not None and not found.follow(node):
            break
    return found


def _table_of(shape: tuple[int, ...], n: int) -> _Table | None:
    if len(shape) != 3:
        return None
    if shape[0] * shape[1] == n:
        return _Table.of(shape[0], shape[1])
    if shape[0] * shape[2] == n:
        return _Table.of(shape[0], shape[2], token_dim=2)
    return None


def _scores(of_classes: Node) -> tuple[int, ...]:
    """Return the shape of what a cross entropy takes, with the classes in dimension 1."""
    given = of_classes.next_functions[0][0]
    return () if given is None else shape_of(given)


def _counts_each(of_classes: Node, root: Node) -> bool:
    """Return whether each target counts: nothing leaves some out before all are summed.

    A mask would be a product, or a selection.
    """
    if getattr(of_classes, "_saved_reduction", 0) != 0:
        return True
    behind = [*takewhile(lambda node: node is not of_classes, links(root, LONGEST_CHAIN))]
    made_of = next((node for node in reversed(behind) if node.name() not in SHAPES), root)
    return made_of.name() in ("MeanBackward0", "SumBackward0")


def _ends(rows: Tensor, ignored: int, of_classes: Node) -> list[Tensor]:
    """Return the usual last target that counts, and how often it is at the ends and at all.

    Also how many other targets there are, and the weight of the last one.
    """
    is_ignored = rows == ignored
    place = torch.arange(rows.shape[1], device=rows.device)
    ends = torch.where(is_ignored, -1, place).amax(1, keepdim=True)
    last = rows.gather(1, ends.clamp(min=0)).median()  # that of most rows, if there is such a one
    is_last = (rows == last) & ~is_ignored
    at_end = (is_last | is_ignored).flip(1).long().cumprod(1).flip(1).bool() & is_last
    runs = at_end.sum(1)
    n_classes = _scores(of_classes)[1]
    seen = rows.new_zeros(n_classes).scatter(0, rows.long().clamp(0, n_classes - 1).flatten(), 1)
    weights = getattr(of_classes, "_saved_weight", None)
    weight = last.new_ones(()) if weights is None else weights[last.long().clamp(0, n_classes - 1)]
    n = (~is_ignored).sum()
    read = [last, runs.sum(), is_last.sum(), (runs > 0).double().mean()]
    read += [runs.amin(), runs.amax(), n, seen.sum() - 1, weight]
    return [one.double() for one in read]


def _matches(
    inputs: Sequence[Tensor], targets: Tensor, table: _Table, ignored: int
) -> list[Tensor]:
    """Return how many targets are a token of the inputs, and how many are compared with one.

    In turn for each input, for tokens of a row in dimension 1 or, as in recurrent layers, 0, and
    for each offset.
    """
    found: list[Tensor] = []
    for one in inputs:
        is_whole = tuple(one.shape) == (*table.whole,)  # else the model has put others in front
        for dim in (1, 0):
            counts = [
                _count(one, targets, ignored, table.start[dim] + offset, dim)
                for offset in (OFFSETS if is_whole else ())
            ]
            found += [equal for equal, _ in counts] + [known for _, known in counts]
    return found


def _count(
    inputs: Tensor, targets: Tensor, ignored: int, offset: int, dim: int
) -> tuple[Tensor, Tensor]:
    late, early = max(0, -offset), max(0, offset)
    n = min(targets.shape[dim] - late, inputs.shape[dim] - early)
    if n < 1 or targets.shape[1 - dim] != inputs.shape[1 - dim]:
        nothing = targets.new_zeros(()).double()
        return nothing, nothing
    wanted, given = targets.narrow(dim, late, n), inputs.narrow(dim, early, n)
    is_known = wanted != ignored
    return ((wanted == given) & is_known).sum().double(), is_known.sum().double()
