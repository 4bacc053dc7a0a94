"""Gradients of a module's inputs: the module's own share, not the total over all consumers.

A tensor hook on an input would give the total. Here the autograd nodes that feed the inputs from
inside the module are found when it returns, and what each sends is summed.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.model.reparametrized import weight_of
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.probes.calls.cut_views import Narrowed, Widened, cut_view
from notebook_probe.probes.calls.output_gradients import InPlace, hook_output
from notebook_probe.probes.reading.attempt import attempt_in_hook
from notebook_probe.probes.reading.entry import (
    Entry,
    GivenInput,
    base_of,
    is_returned,
    is_view,
    key_of,
    links_of,
)
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.step.part import FramePart
from notebook_probe.probes.step.phase import is_traced
from notebook_probe.probes.step.plain_mode import plain_mode

__all__ = ["hook_entry"]


def hook_entry(
    entry: Entry,
    outputs: list[Tensor],
    plan: ReadingPlan,
    frame: FramePart,
    module: nn.Module,
    call: int,
) -> None:
    """Put hooks on the gradients that the module sends to its inputs.

    Raises
    ------
    UnreadableError
        The module's graph is too large to be walked, or it changes a view in place and is given
        another one of the same tensor.
    """
    links = links_of(entry, outputs)
    for given in entry.inputs:
        feeding, *through = [links.get(key_of(edge), []) for edge in given.edges()]
        _refuse_entangled(given, entry)
        returned = [tensor for tensor in outputs if is_returned(tensor, given)]
        n_links = sum(map(len, (feeding, *through))) or len(returned)
        share = _Share(n_links, plan, frame, module, call, given is entry.inputs[0])
        for tensor in returned:
            hook_output(tensor, frame, share.add)
        if returned:
            continue
        # More than that one link, and what reaches the view's base is not the view's alone.
        has_one = n_links == len(feeding) == 1
        view = cut_view(given.tensor, given.edge, outputs) if has_one else None
        if view is not None:
            hook_output(view, frame, partial(share.add_part, Widened(view, given.tensor)))
            continue
        share.views += [InPlace(output) for output in outputs if is_view(output, given.tensor)]
        for node, position in feeding:
            node.register_hook(_Sender(position, share.add))
        for node, position in through[0] if through else ():
            narrowed = Narrowed(given.tensor, base_of(given.tensor))
            node.register_hook(_Sender(position, partial(share.add_part, narrowed)))


def _refuse_entangled(given: GivenInput, entry: Entry) -> None:
    """Raise if one of several views of a tensor was changed, because it is unknown which."""
    base = base_of(given.tensor)
    if given.has_changed and sum(base_of(one.tensor) is base for one in entry.inputs) > 1:
        raise UnreadableError("changes in place one of several inputs that share their memory")


class _Share:
    """Sums what the links of one input send in one backward, and measures the sum."""

    __slots__ = (
        "_call", "_frame", "_into", "_is_first", "_module", "_n_come", "_plan", "_sum", "n_links",
        "views"
    )  # fmt: skip

    def __init__(
        self,
        n_links: int,
        plan: ReadingPlan,
        frame: FramePart,
        module: nn.Module,
        call: int,
        is_first: bool,
    ) -> None:
        self.n_links, self._is_first = n_links, is_first
        self._plan, self._frame, self._call = plan, frame, call
        self._into: FramePart | None = None
        self._module = weakref.ref(module)
        self.views: list[InPlace] = []
        """Outputs that are views of the input: changed in place, their links never come."""
        self._n_come = 0
        self._sum: Tensor | None = None

    def add(self, gradient: Tensor | None) -> None:
        if torch.compiler.is_compiling() or self._frame.closed or is_traced():
            return
        if self._n_come == 0:
            self._into = self._frame.receiver()
            if self.n_links > 1:  # one may never come
                torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        self._n_come += 1
        if gradient is not None:
            gradient = gradient.detach()
            self._sum = gradient if self._sum is None else self._sum + gradient
        if self._n_come == self.n_links:
            self._finish()

    def add_part(self, fitted: Callable[[Tensor], Tensor], gradient: Tensor | None) -> None:
        """Add the gradient of a view of the input, or of what the input is a view of."""
        if gradient is None or torch.compiler.is_compiling() or self._frame.closed or is_traced():
            return
        try:
            plain_mode(lambda: self.add(fitted(gradient.detach())))
        except Exception as error:  # the backward must survive any kind of tensor
            self._frame.blame_all(self._plan.of("entry"), error)

    def _finish(self) -> None:
        begun = time.perf_counter()
        is_whole = self._n_come == self.n_links or not any(one.has_changed() for one in self.views)
        total, self._sum, self._n_come = self._sum, None, 0
        module, plan, frame, self._into = self._module(), self._plan, self._into, None
        if total is None or module is None or frame is None or not is_whole or self._frame.closed:
            return
        attempt_in_hook(begun, frame, plan, "entry", self._measure, frame, total, module)

    def _measure(self, frame: FramePart, gradient: Tensor, module: nn.Module) -> None:
        plan = self._plan
        for cell in plan.cells.get("grad_input", ()):
            if self._is_first or not cell.first_only:
                cell.add(frame, gradient, module, self._call)
        for function in plan.at("entry") if self._is_first else ():  # as of the input, the first
            given = {
                "grad_input": gradient,
                "weight": weight_of(module),
                "module": unwrapped(module),
            }
            function.call(frame, given, self._call)


class _Sender:
    """A post-hook of one node: passes on what it sends to one of its inputs."""

    __slots__ = ("_add", "_position")

    def __init__(self, position: int, add: Callable[[Tensor | None], None]) -> None:
        self._position, self._add = position, add

    def __call__(self, sent: tuple[Any, ...], received: tuple[Any, ...]) -> None:
        self._add(sent[self._position])
