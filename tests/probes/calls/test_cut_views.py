"""Outputs that are views, changed in place afterwards: torch drops their hooks then."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tests.models import floats, made, sgd
from tests.probes.oracles import Noted, norm_of, notes_of, same_column, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)

VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "flatten": lambda h: h.flatten(1),
    "transpose": lambda h: h.transpose(0, 1),
    "permute": lambda h: h.permute(2, 0, 1),
    "slice": lambda h: h[1:4],
    "strided slice": lambda h: h[:, ::2, 1:],
    "select": lambda h: h[2],
    "view": lambda h: h.view(10, 3),
    "unsqueeze": lambda h: h.unsqueeze(0),
    "diagonal": lambda h: h.diagonal(dim1=1, dim2=2),
    "narrow": lambda h: h.narrow(2, 1, 2),
    "view of a view": lambda h: h.transpose(1, 2)[:, 1:].flatten(0, 0),
    "unsafe chunk": lambda h: h.unsafe_chunk(2, 1)[1],
}


def set_item(y: Tensor) -> Tensor:
    y[0] = 0.5
    return y


def set_item_elsewhere(y: Tensor) -> Tensor:
    return torch.cat([torch.full_like(y[:1], 0.5), y[1:]])


CHANGES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "nothing": (lambda y: y * 3, lambda y: y * 3),
    "mul_": (lambda y: y.mul_(3), lambda y: y * 3),
    "relu_": (lambda y: y.relu_(), lambda y: y.relu()),
    "setitem": (set_item, set_item_elsewhere),
    "twice": (lambda y: y.mul_(2).sigmoid_(), lambda y: (2 * y).sigmoid()),
    "one item": (lambda y: y[:1].mul_(3) + 0 * y[:1], lambda y: 3 * y[:1]),
}


class Viewed(Noted):
    """A layer, a module that returns a view of its output, and a change of that in place."""

    class Part(nn.Module):
        def __init__(self, view: Callable[[Tensor], Tensor]) -> None:
            super().__init__()
            self._view = view

        def forward(self, hidden: Tensor) -> Tensor:
            return self._view(hidden)

    def __init__(
        self, view: Callable[[Tensor], Tensor], change: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__()
        self.linear, self.part = nn.Linear(4, 6), Viewed.Part(view)
        self._change = change

    def forward(self, x: Tensor) -> Tensor:
        hidden = (self.linear(x).tanh() * 1).reshape(5, 2, 3)  # tanh needs its own output
        return self._change(self.note("output", self.part(self.note("hidden", hidden))))


def loop(model: nn.Module, optimizer: Optimizer) -> None:
    for step in STEPS:
        optimizer.zero_grad()
        (model(batch(step)) + 0.3).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_that_is_changed_in_place_has_the_gradient_of_its_old_value(
    view: str, change: str, watch: Watch
) -> None:
    in_place, elsewhere = CHANGES[change]
    plain, oracle, model = (
        made(partial(Viewed, VIEWS[view], how)) for how in (in_place, elsewhere, in_place)
    )
    notes = notes_of(oracle)
    run = watch(model, probes={"part": ["output_norm", "output_grad_norm"]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    same_column(run, "part", "output_norm", [norm(y) for y in notes.values("output")])
    gradients = notes.gradients_of("output")
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients], rtol=1e-4)
    assert not run.status().errors


def test_a_view_whose_base_is_changed_has_the_gradient_of_its_old_value(watch: Watch) -> None:
    class Based(Noted):
        def __init__(self, in_place: bool) -> None:
            super().__init__()
            self.linear, self.part = nn.Linear(4, 6), nn.Flatten(0)
            self._in_place = in_place

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.linear(x) * 1
            view = self.note("output", self.part(hidden))
            if self._in_place:
                hidden.mul_(3)
            else:
                view = 3 * view
            return view.sin()

    plain, oracle, model = (made(partial(Based, in_place)) for in_place in (True, False, True))
    notes, run = notes_of(oracle), watch(model, probes={"part": ["output_grad_norm"]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    gradients = notes.gradients_of("output")
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients], rtol=1e-4)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("loss", ["sum", "squares"])
def test_the_memory_order_of_base_and_gradient_does_not_matter(
    loss: str, layout: torch.memory_format, watch: Watch
) -> None:
    """The gradient of a sum is one number, expanded; that of a convolution may be permuted."""

    class Images(Noted):
        def __init__(self, in_place: bool) -> None:
            super().__init__()
            self.conv, self.part = nn.Conv2d(2, 4, 3), Cut(slice(1, 3))
            self._in_place = in_place

        def forward(self, images: Tensor) -> Tensor:
            hidden = self.conv(images.to(memory_format=layout)) * 1
            part = self.note("output", self.part(hidden))
            return part.mul_(3) if self._in_place else part * 3

    def train(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            output = model(floats(2, 2, 5, 6)(step))
            (output.sum() if loss == "sum" else output.square().sum()).backward()
            optimizer.step()

    plain, oracle, model = (made(partial(Images, in_place)) for in_place in (True, False, True))
    notes, run = notes_of(oracle), watch(model, probes={"part": ["output_grad_norm"]})
    train_alike(train, plain, model, lambda each: sgd(each, lr=0.001))
    train(oracle, sgd(oracle, lr=0.001))
    gradients = [norm(g) for g in notes.gradients_of("output")]
    same_column(run, "part", "output_grad_norm", gradients, rtol=1e-4)


def test_of_two_views_of_one_tensor_each_has_its_own_gradient(watch: Watch) -> None:
    class Halves(Noted):
        """Both halves are returned, one of them is changed."""

        def __init__(self, in_place: bool) -> None:
            super().__init__()
            self.linear, self.left, self.right = nn.Linear(4, 6), Cut(slice(3)), Cut(slice(3, 6))
            self._in_place = in_place

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.linear(x) * 1
            left = self.note("left", self.left(hidden))
            right = self.note("right", self.right(hidden))
            if self._in_place:
                left.mul_(5)
            else:
                left = left * 5
            return torch.cat([left.sin(), right.exp()])

    plain, oracle, model = (made(partial(Halves, in_place)) for in_place in (True, False, True))
    notes, run = notes_of(oracle), watch(model, probes={("left", "right"): ["output_grad_norm"]})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    for place in ("left", "right"):
        gradients = notes.gradients_of(place)
        same_column(run, place, "output_grad_norm", [norm(g) for g in gradients], rtol=1e-4)


class Cut(nn.Module):
    def __init__(self, columns: slice) -> None:
        super().__init__()
        self._columns = columns

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden[:, self._columns]


def test_views_of_one_call_are_pooled_with_those_of_the_next(watch: Watch) -> None:
    """Micro-batches: every call's view keeps its own stand-by."""

    def accumulate(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(3):
                (model(batch(3 * step + micro)) + 0.3).square().sum().backward()
            optimizer.step()

    in_place, elsewhere = CHANGES["mul_"]
    plain, oracle, model = (
        made(partial(Viewed, VIEWS["flatten"], how)) for how in (in_place, elsewhere, in_place)
    )
    notes, run = notes_of(oracle), watch(model, probes={"part": ["output_grad_norm"]})
    train_alike(accumulate, plain, model)
    accumulate(oracle, sgd(oracle))
    kept = notes.gradients_of("output")
    pooled = [np.concatenate(kept[3 * step : 3 * step + 3]) for step in STEPS]
    same_column(run, "part", "output_grad_norm", [norm(g) for g in pooled], rtol=1e-4)


def test_a_view_that_is_not_changed_speaks_once_and_so_does_its_base(watch: Watch) -> None:
    """The base is read directly too: that gradient is not the view's."""

    class Both(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.part = nn.Linear(4, 6), nn.Flatten(0)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.note("base", self.linear(x))
            view = self.note("output", self.part(hidden))
            return torch.cat([view.sin(), (10 * hidden).flatten()])

    twin, model = made(Both), made(Both)
    notes, run = notes_of(twin), watch(model, probes={"*": ["output_grad_norm"]})
    train_alike(loop, twin, model)
    for place, name in (("part", "output"), ("linear", "base")):
        gradients = notes.gradients_of(name)
        same_column(run, place, "output_grad_norm", [norm(g) for g in gradients])


def test_a_view_that_nobody_uses_has_no_gradient_although_its_base_has(watch: Watch) -> None:
    """Two views of one tensor are returned, as keys and values are; one of them is not used."""

    class TwoViews(nn.Module):
        def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
            own = hidden * 2
            return own[:, :3], own[:, 3:]

    class ViewedTwice(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.part, self.flat = nn.Linear(4, 6), TwoViews(), nn.Flatten(0)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.linear(x)
            used, _ = self.part(hidden)
            self.flat(hidden)
            return self.note("used", used).sin() + hidden[:, :3]

    twin, model = made(ViewedTwice), made(ViewedTwice)
    notes, run = notes_of(twin), watch(model, probes={("part", "flat"): ["output_grad_norm"]})
    train_alike(loop, twin, model)
    gradients = notes.gradients_of("used")
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    same_column(run, "flat", "output_grad_norm", [math.nan] * 3)


def test_a_view_of_a_leaf_is_measured(watch: Watch) -> None:
    """A parameter that is reshaped on its way: nothing stays on the parameter."""

    class Reshaped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.randn(3))

        def forward(self) -> Tensor:
            return self.scale.view(3, 1)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.linear = Reshaped(), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.part() * self.linear(x).sum()

    twin, model = made(Outer), made(Outer)
    run = watch(model, probes={"part": ["output_grad_norm", "grad_norm"]})
    train_alike(loop, twin, model)
    values = run.data.grad_norm.sel(module="part").values.tolist()
    assert all(value > 0 for value in values)
    same_column(run, "part", "output_grad_norm", values)
    run.close()
    assert not model.part.scale._backward_hooks


def test_where_torch_forbids_the_change_it_says_what_it_always_said(watch: Watch) -> None:
    class Chunked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.part = nn.Linear(4, 6), Chunks()

        def forward(self, x: Tensor) -> Tensor:
            first, _ = self.part(self.linear(x))
            return first.mul_(2)

    messages = []
    for watched in (False, True):
        model = made(Chunked)
        if watched:
            watch(model, probes={"*": ["output_grad_norm", "output_norm"]})
        with pytest.raises(RuntimeError, match="is a view and is being modified inplace") as raised:
            model(batch(0))
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


class Chunks(nn.Module):
    def forward(self, hidden: Tensor) -> tuple[Tensor, ...]:
        return hidden.chunk(2, 1)


def test_chunks_that_are_not_changed_are_pooled(watch: Watch) -> None:
    class Chunked(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.part = nn.Linear(4, 6), Chunks()

        def forward(self, x: Tensor) -> Tensor:
            first, second = self.part(self.linear(x))
            return self.note("output", first).sin() * self.note("output", second).exp()

    twin, model = made(Chunked), made(Chunked)
    notes, run = notes_of(twin), watch(model, probes={"part": ["output_grad_norm", "output_norm"]})
    train_alike(loop, twin, model)
    kept = notes.gradients_of("output")
    pooled = [np.concatenate(kept[2 * step : 2 * step + 2]) for step in STEPS]
    same_column(run, "part", "output_grad_norm", [norm(g) for g in pooled])


def test_a_view_without_a_gradient_is_a_gap(watch: Watch) -> None:
    """Detached, or of a batch that needs none: measured forward, silent backward."""

    class Detached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flat, self.linear = nn.Flatten(0), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            flat = self.flat(x * 1)
            flat.mul_(2)
            return self.linear(flat.view(5, 4))

    twin, model = made(Detached), made(Detached)
    run = watch(model, probes={"flat": ["output_norm", "output_grad_norm"]})
    train_alike(loop, twin, model)
    same_column(run, "flat", "output_norm", [norm_of(batch(step)) for step in STEPS])
    same_column(run, "flat", "output_grad_norm", [math.nan] * 3)
    assert not run.status().errors
