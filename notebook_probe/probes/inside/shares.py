"""Gradients of a module's inputs in a traced graph: the part that comes from the module.

As with hooks, the nodes that send gradients to an input are found when the call returns. Here they
are nodes of AOTAutograd's trace, so the values computed from them are part of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node

from notebook_probe.probes.inside.handing import (
    GraphReader,
    Summed,
    at_the_end,
    hand_out_in_backward,
)
from notebook_probe.probes.reading.entry import (
    Entry,
    GivenInput,
    is_returned,
    is_view,
    key_of,
    links_of,
    mark_entry,
)

__all__ = ["Begun"]


@dataclass(frozen=True, slots=True)
class Begun:
    """Call whose inputs were read and that has not returned."""

    entry: Entry
    reader: GraphReader

    @classmethod
    def of(cls, inputs: list[Tensor], reader: GraphReader) -> Begun | None:
        """Note that a call begins; None if no input needs a gradient or this is unknown."""
        try:
            entry = mark_entry(inputs)
        except Exception:  # whatever a user's tensor is: the model is compiled without
            return None
        return cls(entry, reader) if entry is not None else None

    def hook(self, outputs: list[Tensor]) -> None:
        """Add hooks to the gradients that the call sends to its inputs, if they are known."""
        try:
            links = links_of(self.entry, outputs)
            for nth, given in enumerate(self.entry.inputs):
                # Of a view that was changed in place other nodes send to what it is a view of.
                if len(given.edges()) == 1:
                    self._hook(nth, given, links.get(key_of(given.edge), []), outputs)
        except Exception:  # whatever a user's tensor is: the model is compiled without
            return

    def _hook(
        self, nth: int, given: GivenInput, links: list[tuple[Node, int]], outputs: list[Tensor]
    ) -> None:
        where = f"{self.reader.where} {nth}"
        reader = self.reader._replace(where=where, is_first=nth == 0)
        returned = [one for one in outputs if is_returned(one, given)]
        if returned:
            share = _TracedShare(len(returned), reader, True)
            for output in returned:
                output.register_hook(share.add)
            return
        # A view that is changed in place later takes nodes out of the graph.
        share = _TracedShare(
            len(links), reader, not any(is_view(one, given.tensor) for one in outputs)
        )
        for node, position in links:
            node.register_hook(_ShareSender(position, share))


class _TracedShare:
    """Sum of what the links of one input send in one backward, whose sums are handed out."""

    def __init__(self, n_links: int, reader: GraphReader, may_miss: bool) -> None:
        self._n_links, self._reader, self._may_miss = n_links, reader, may_miss
        self._n_come = 0
        self._total: Tensor | None = None

    def add(self, gradient: Tensor | None) -> None:
        """Add what one link sends."""
        if self._n_come == 0 and self._n_links > 1 and self._may_miss:
            at_the_end(self._rest)
        self._n_come += 1
        if gradient is not None:
            gradient = gradient.detach()
            self._total = gradient if self._total is None else self._total + gradient
        if self._n_come == self._n_links:
            hand_out_in_backward(self._rest())

    def _rest(self) -> list[Summed]:
        total, self._total, self._n_come = self._total, None, 0
        return self._reader.summed(total) if total is not None else []


class _ShareSender:
    """A post-hook of one node: passes on what it sends to one of its inputs."""

    def __init__(self, position: int, share: _TracedShare) -> None:
        self._position, self._share = position, share

    def __call__(self, sent: tuple[Any, ...], received: tuple[Any, ...]) -> None:
        self._share.add(sent[self._position])
