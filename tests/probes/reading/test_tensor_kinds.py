"""Tensors of every type, layout and order count as the logical tensor that they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer, SparseAdam

from notebook_probe.quantities.reduce.stat import Stat
from tests.models import floats, made, sgd, words
from tests.probes.oracles import (
    Noted,
    column,
    float64,
    grad_mean,
    norm_of,
    notes_of,
    plain_loop,
    same_column,
    train_alike,
    update_size,
)
from tests.run.conftest import Watch
from tests.run.oracle import Numbers, norm

batch = floats(5, 4)
STEPS = range(2)
loop = plain_loop(batch, STEPS)


# ---------------------------------------------------------------- numbers of every type


def test_tokens_are_cast_and_measured_and_a_mask_beside_floats_is_not(watch: Watch) -> None:
    class Masked(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(7, 4)
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, given: Tensor) -> Tensor:
            hidden, mask = self.embed(given), given == 0
            self.note("hidden", hidden)
            return self.attention(hidden, hidden, hidden, key_padding_mask=mask)[0]

    def read(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(words(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Masked), made(Masked)
    notes = notes_of(twin)
    run = watch(model, probes={"embed": ["input_norm", "input_mean", "input_std"]})
    run.attach("attention", "input_norm")
    train_alike(read, twin, model)
    given = [float64(words(step)) for step in STEPS]
    same_column(run, "embed", "input_norm", [norm(x) for x in given])
    same_column(run, "embed", "input_mean", [float(x.mean()) for x in given])
    same_column(run, "embed", "input_std", [float(x.std(ddof=1)) for x in given])
    wanted = [norm(x) for x in notes.values("hidden")]
    same_column(run, "attention", "input_norm", wanted)  # q, k and v are one tensor


def grad_size_of_one(grad: Tensor) -> float:
    """As a quantity that is given the gradient itself sees it."""
    return float(grad.to_dense().double().norm())


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_sparse_gradients_are_coalesced_and_their_mean_is_the_dense_one(
    optimizer: str, watch: Watch
) -> None:
    optimizer_of: dict[str, Callable[[nn.Module], Optimizer]] = {
        "sgd": lambda model: SGD(model.parameters(), lr=0.1),
        "adam": lambda model: SparseAdam(list(model.parameters()), lr=0.1),
    }

    class Sparse(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(9, 4, sparse=True)

        def forward(self, given: Tensor) -> Tensor:
            return self.embed(given)

    def repeat(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(torch.tensor([1, 1, 1, 2, 5 + step])).square().sum().backward()
            optimizer.step()

    twin, model = made(Sparse), made(Sparse)
    notes = notes_of(twin)
    quantities = ["grad_norm", grad_mean, update_size, grad_size_of_one, "weight_norm"]
    run = watch(model, probes={"embed": quantities})
    train_alike(repeat, twin, model, optimizer_of[optimizer])
    gradients = [each["embed.weight"] for each in notes.gradients]
    assert all(gradient.size == 36 for gradient in gradients)
    same_column(run, "embed", "grad_norm", [norm(g) for g in gradients])
    same_column(run, "embed", "grad_mean", [float(g.mean()) for g in gradients])
    same_column(run, "embed", "grad_size_of_one", [norm(g) for g in gradients])
    same_column(run, "embed", "update_size", [norm(u["embed.weight"]) for u in notes.updates], 1e-4)


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_complex_numbers_count_by_their_modulus_everywhere(watch: Watch) -> None:
    class Complex(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.part = nn.Linear(4, 3).to(torch.complex64)

        def forward(self, x: Tensor) -> Tensor:
            return self.note("output", self.part(torch.complex(x, x.flip(0)))).abs()

    twin, model = made(Complex), made(Complex)
    notes = notes_of(twin)
    run = watch(model, probes={"part": ["output_norm", "output_mean", "output_grad_norm"]})
    run.attach("part", "input_norm")
    run.attach("part.weight", ["weight_norm", "grad_norm", update_size])
    train_alike(loop, twin, model)
    outputs, gradients = notes.values("output"), notes.gradients_of("output")
    same_column(run, "part", "output_norm", [norm(y) for y in outputs])
    same_column(run, "part", "output_mean", [float(y.mean()) for y in outputs])
    same_column(run, "part", "output_grad_norm", [norm(g) for g in gradients])
    same_column(run, "part", "input_norm", [math.sqrt(2) * norm_of(batch(i)) for i in STEPS])
    name = "part.weight"
    same_column(run, name, "weight_norm", [norm(each[name]) for each in notes.weights])
    same_column(run, name, "grad_norm", [norm(each[name]) for each in notes.gradients])


@pytest.mark.filterwarnings("ignore:Complex modules are a new feature")
def test_a_complex_update_is_the_modulus_of_the_difference(watch: Watch) -> None:
    """Not the difference of the moduli: a weight that is only turned has moved."""
    model = nn.Linear(3, 2, bias=False).to(torch.complex64)
    run = watch(model, probes={"weight": [update_size, "weight_norm"]})
    before = model.weight.detach().to(torch.complex128).numpy()
    optimizer = sgd(model, lr=1.0)
    model(torch.zeros(1, 3, dtype=torch.complex64)).abs().sum().backward()
    model.weight.grad = (model.weight * (1 - 1j)).detach()
    optimizer.step()
    after = model.weight.detach().to(torch.complex128).numpy()
    np.testing.assert_allclose(np.abs(after), np.abs(before), rtol=1e-6)
    same_column(run, "weight", "update_size", [float(np.linalg.norm(after - before))])


# ---------------------------------------------------------------- layouts and rare types


def quantized(x: Tensor) -> Tensor:
    return torch.quantize_per_tensor(x, 0.05, 3, torch.qint8)


def quantized_by_channel(x: Tensor) -> Tensor:
    scales, zeros = torch.tensor([0.1, 0.2, 0.05, 0.3]), torch.zeros(4, dtype=torch.long)
    return torch.quantize_per_channel(x, scales, zeros, 1, torch.quint8)


KINDS: dict[str, tuple[Callable[[Tensor], Any], Callable[[Any], Numbers]]] = {
    "float8_e4m3fn": (lambda x: x.to(torch.float8_e4m3fn), float64),
    "float8_e5m2": (lambda x: x.to(torch.float8_e5m2), float64),
    "float64": (lambda x: 1e30 * x.double(), float64),
    "int8": (lambda x: (50 * x).to(torch.int8), float64),
    "uint16": (lambda x: (500 * x.abs()).to(torch.uint16), float64),
    "uint64": (lambda x: (500 * x.abs()).to(torch.uint64), float64),
    "timestamps": (lambda x: 1_700_000_000 + (100 * x).long(), float64),
    "bool": (lambda x: x > 0, float64),
    "quantized": (quantized, lambda q: float64(q.dequantize())),
    "quantized by channel": (quantized_by_channel, lambda q: float64(q.dequantize())),
    "mkldnn": (lambda x: x.to_mkldnn(), float64),
    "sparse coo": (lambda x: (x * (x > 0)).to_sparse(), float64),
    "sparse csr": (lambda x: (x * (x > 0)).to_sparse_csr(), float64),
    "nested": (
        lambda x: torch.nested.nested_tensor([x[:2], x[2:]]),
        lambda n: np.concatenate([float64(part) for part in n.unbind()]),
    ),
    "jagged": (
        lambda x: torch.nested.nested_tensor([x[:2], x[2:]], layout=torch.jagged),
        lambda n: float64(n.values()),
    ),
    "subclass": (lambda x: x.as_subclass(Labelled), lambda x: float64(x.as_subclass(Tensor))),
    "conjugated": (lambda x: torch.complex(x, x).conj(), float64),
    "negated view": (lambda x: torch.complex(x, x).conj().imag, float64),
    "expanded": (lambda x: x[:1].expand(7, 5, 4), float64),
    "permuted": (lambda x: x.t()[1:], float64),
    "overlapping": (lambda x: x.flatten().unfold(0, 5, 2), float64),
    "empty": (lambda x: x[:0], float64),
    "0-d": (lambda x: -x[0, 0].abs(), float64),
    "one row": (lambda x: x[:1], float64),
}


class Labelled(Tensor):
    """Somebody's own tensor class."""


class Converts(Noted):
    """A part that returns its input in another form; nobody uses it further."""

    class Part(nn.Module):
        def __init__(self, convert: Callable[[Tensor], Any]) -> None:
            super().__init__()
            self._convert = convert

        def forward(self, x: Tensor) -> Any:
            return self._convert(x.detach())

    def __init__(self, convert: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.linear, self.part = nn.Linear(4, 4), Converts.Part(convert)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.note("hidden", self.linear(x))
        self.part(hidden)
        return hidden


def output_sum_of_squares(output_sumsq: Stat) -> Any:
    return output_sumsq.sumsq


def output_n_zero(output_zeros: Stat) -> Any:
    return output_zeros.n_zero


FIGURES: dict[str, Callable[[Numbers], float]] = {
    "output_norm": norm,
    "output_mean": lambda x: float(x.mean()) if x.size else math.nan,
    "output_std": lambda x: float(x.std(ddof=1)) if x.size > 1 else math.nan,
    "zero_fraction": lambda x: float((x == 0).mean()) if x.size else math.nan,
    "nonfinite_fraction": lambda x: 0.0 if x.size else math.nan,
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:.*quantize:")
@pytest.mark.parametrize("kind", KINDS)
def test_every_layout_and_type_of_number_is_measured_as_the_logical_tensor(
    kind: str, watch: Watch
) -> None:
    convert, read = KINDS[kind]
    twin, model = made(partial(Converts, convert)), made(partial(Converts, convert))
    notes = notes_of(twin)
    run = watch(model, probes={"part": [*FIGURES, "input_norm"]})
    train_alike(loop, twin, model)
    given = [torch.from_numpy(x).float().reshape(5, 4) for x in notes.values("hidden")]
    converted = [read(convert(x)) for x in given]
    for quantity, figure in FIGURES.items():
        same_column(run, "part", quantity, [figure(x) for x in converted])
    same_column(run, "part", "input_norm", [norm_of(x) for x in given])
    assert column(run, "part", "calls") == [1, 1]
    assert not run.status().errors


def test_meta_tensors_are_left_out_and_are_no_error(watch: Watch) -> None:
    def to_meta(x: Tensor) -> Tensor:
        return x.to("meta")

    twin, model = made(partial(Converts, to_meta)), made(partial(Converts, to_meta))
    run = watch(model, probes={"part": [*FIGURES, "input_norm"]})
    train_alike(loop, twin, model)
    run.controls.settle()
    for quantity in FIGURES:
        assert np.isnan(column(run, "part", quantity)).all()
    assert np.isfinite(column(run, "part", "input_norm")).all()
    assert not run.status().errors
    assert run.status().problem == ""
    assert [p.note for p in run.probes() if p.quantity == "output_norm"] != [""]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype stage")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_output_has_a_gradient_too(layout: torch.layout, watch: Watch) -> None:
    class Ragged(Noted):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: Tensor) -> Tensor:
            ragged = torch.nested.as_nested_tensor([x[:2], x[2:]], layout=layout)
            return torch.cat([part.flatten() for part in self.linear(ragged).unbind()])

    twin, model = made(Ragged), made(Ragged)
    run = watch(model, probes={"linear": ["output_norm", "output_grad_norm", "input_norm"]})
    outputs = []

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            output = model(batch(step))
            outputs.append(output.detach().clone())
            output.square().sum().backward()
            optimizer.step()

    train_alike(loop, twin, model)
    same_column(run, "linear", "input_norm", [norm_of(batch(step)) for step in STEPS])
    same_column(run, "linear", "output_norm", [norm_of(y) for y in outputs[:2]])
    same_column(run, "linear", "output_grad_norm", [2 * norm_of(y) for y in outputs[:2]])
    assert not run.status().errors


def test_the_sum_of_squares_of_an_empty_batch_adds_nothing_to_a_full_one(watch: Watch) -> None:
    """Its call is counted all the same."""

    def with_empty(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            model(batch(step)[:0]).sum().backward()
            optimizer.step()

    def build() -> nn.Sequential:
        return nn.Sequential(nn.Linear(4, 3), nn.ReLU())

    twin, model = made(build), made(build)
    run = watch(model, probes={"0": ["input_norm", "input_mean", "input_std"]})
    run.attach("0", [output_sum_of_squares, output_n_zero])
    train_alike(with_empty, twin, model)
    given = [float64(batch(step)) for step in STEPS]
    same_column(run, "0", "input_norm", [norm(x) for x in given])
    same_column(run, "0", "input_mean", [float(x.mean()) for x in given])
    same_column(run, "0", "input_std", [float(x.std(ddof=1)) for x in given])
    assert column(run, "0", "output_n_zero") == [0, 0]
    assert column(run, "0", "calls") == [2, 2]


# ---------------------------------------------------------------- memory order of parameters


@pytest.mark.parametrize("order", ["channels_last", "transposed", "expanded"])
def test_the_memory_order_of_a_parameter_does_not_matter(order: str, watch: Watch) -> None:
    class Ordered(Noted):
        def __init__(self) -> None:
            super().__init__()
            weight = torch.randn(6, 2, 3, 3)
            if order == "channels_last":
                weight = weight.to(memory_format=torch.channels_last)
            elif order == "transposed":
                weight = weight.permute(1, 0, 3, 2)
            else:  # a view of one number: what it stands for counts, with repeats
                weight = torch.randn(1, 1, 1, 1).expand(6, 2, 3, 3)
            self.weight = nn.Parameter(weight)
            self.weight.requires_grad_(order != "expanded")
            self.bias = nn.Parameter(torch.zeros(len(weight)))

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.conv2d(x, self.weight, self.bias)

    n_channels = 6 if order == "transposed" else 2

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            images = floats(2, n_channels, 5, 5)(step).to(memory_format=torch.channels_last)
            model(images).square().mean().backward()
            optimizer.step()

    def optimizer_of(model: nn.Module) -> Optimizer:
        return Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)

    twin, model = made(Ordered), made(Ordered)
    notes = notes_of(twin)
    run = watch(model, probes={"weight": ["weight_norm", "grad_norm", update_size]})
    train_alike(loop, twin, model, optimizer_of)
    same_column(run, "weight", "weight_norm", [norm(each["weight"]) for each in notes.weights])
    if order == "expanded":
        assert np.isnan(column(run, "weight", "grad_norm")).all()
    else:
        gradients = [norm(each["weight"]) for each in notes.gradients]
        same_column(run, "weight", "grad_norm", gradients)
        updates = [norm(each["weight"]) for each in notes.updates]
        same_column(run, "weight", "update_size", updates, rtol=1e-4)
    assert not run.status().errors
