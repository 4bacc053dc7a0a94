"""The first operation in which two models differ: planted lines are named, equal ones pass."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError
from notebook_probe.examine.operations.comparing import first_difference, made
from notebook_probe.examine.operations.hashes import hash_of
from notebook_probe.examine.subject import Arguments
from tests.examine.planted import CONVOLUTIONS, DECODER, compared, line_of, program

# Source, text before and after, the line that runs it, its module.
PLANTED = [
    (DECODER, "/ math.sqrt(d // self.heads)", "/ math.sqrt(d)", "scores = scores /", "attn"),
    (DECODER, "torch.bool), 1)", "torch.bool), 2)", "mask = torch.triu", "attn"),
    (DECODER, "nn.GELU()", "nn.GELU('tanh')", "h = self.act(", "act"),
    (DECODER, "nn.Dropout(0.1)", "nn.Dropout(0.2)", "weights = self.drop(", "attn.drop"),
    (DECODER, "softmax(-1)", "softmax(-2)", "weights = scores", "attn"),
    (DECODER, "self.ln2 = nn.LayerNorm(d)", "self.ln2 = nn.LayerNorm(d, eps=1e-3)",
     "h = self.ln2(", "ln2"),
    (DECODER, "x = x + h\n        h", "x = x + 0.5 * h\n        h", "x = x + h", ""),
    (DECODER, "+ self.pos(places)", "+ 2 * self.pos(places)", "x = self.emb(", None),
    (DECODER, "arange(tokens.shape[1])", "arange(tokens.shape[1]).flip(0)", "places =", None),
    (DECODER, "x = self.ln(x)", "x = x", "x = self.ln(x)", None),
    (DECODER, "h = self.ln2(x)", "h = x", "h = self.ln2(", "ln2"),
    (DECODER, "(output, targets)\n\ndef", "(output, targets, label_smoothing=0.1)\n\ndef",
     "return F.cross_entropy", None),
    (DECODER, "(output, targets)\n\ndef", "(output, targets, reduction='sum')\n\ndef",
     "return F.cross_entropy", None),
    (DECODER, "targets.flatten()", "targets.t().flatten()", "targets = targets", None),
    (DECODER, "out.transpose(1, 2).reshape", "out.reshape", "out = out.", "attn"),
    (DECODER, "self.drop(weights)", "weights", "weights = self.drop(", "attn.drop"),
    (DECODER, "self.act(self.up(h))", "F.relu(self.up(h))", "h = self.act(", "act"),
    (DECODER, "self.down(h)\n", "self.down(h).clamp(-0.2, 0.2)\n", "h = self.down(", ""),
    (DECODER, "return self.head(x)", "return self.head(x) / 1.01", "return self.head(", None),
    (CONVOLUTIONS, "x - x.mean()", "x", "x = x - x.mean()", None),
    (CONVOLUTIONS, "F.relu(self.norm(", "F.leaky_relu(self.norm(", "h = F.relu(self.norm", None),
    (CONVOLUTIONS, "F.max_pool2d", "F.avg_pool2d", "h = F.max_pool2d", None),
    (CONVOLUTIONS, "BatchNorm2d(4)", "BatchNorm2d(4, momentum=0.5)", "h = F.relu(", "norm"),
    (CONVOLUTIONS, "nn.Conv2d(4, 4, 3, padding=1)",
     "nn.Conv2d(4, 4, 3, padding=1, padding_mode='circular')", "h = h + F.relu(", "conv2"),
]  # fmt: skip
CUTS = [
    (DECODER, "x + h\n        return", "x + h.detach()\n        return", "return x", -1),
    (DECODER, "out = weights @ v", "out = weights @ v.detach()", "out = weights @", 0),
    (DECODER, "k.transpose(-1, -2)", "k.transpose(-1, -2).detach()", "scores = q @", 0),
    (CONVOLUTIONS, "F.relu(self.conv2(h))", "F.relu(self.conv2(h.detach()))", "h = h + F.relu", 0),
]  # fmt: skip


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))


X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
Y = torch.arange(6) % 3
cross_entropy = nn.functional.cross_entropy


@pytest.mark.parametrize(("source", "before", "after", "line", "module"), PLANTED)
def test_a_planted_line_is_named_with_its_module(
    source: str, before: str, after: str, line: str, module: str | None
) -> None:
    found = compared(source, before, after)
    assert found.direction == "forward"
    assert line_of(source, line) in {one.line for one in (found.this, found.other) if one}
    if module is not None:
        block = "" if source is CONVOLUTIONS else "blocks.0." if module else "blocks.0"
        assert found.module == f"{block}{module}"


@pytest.mark.parametrize(("source", "before", "after", "line", "shift"), CUTS)
def test_a_detach_is_named_though_it_changes_the_backward_alone(
    source: str, before: str, after: str, line: str, shift: int
) -> None:
    found = compared(source, before, after)
    assert (found.kind, found.direction) == ("operation", "backward")
    assert found.other is not None
    assert found.other.operation == "aten.detach.default"
    assert found.other.line == line_of(source, line) + shift
    assert "detach()" in found.other.code


@pytest.mark.parametrize("source", [DECODER, CONVOLUTIONS])
def test_equal_programs_have_no_difference(source: str) -> None:
    found = compared(source, "return", "return")
    assert not found
    assert found.n_operations[0] == found.n_operations[1] > 30
    assert found.title == f"No difference in {found.n_operations[0]} operations of a step"


def test_another_way_to_the_same_values_is_no_difference() -> None:
    assert not compared(DECODER, "out.transpose(1, 2)", "out.transpose(1, 2).contiguous()")
    assert not compared(CONVOLUTIONS, "h.flatten(1)", "h.view(4, 16).view(4, 16)")


class WithLibraries(nn.Module):
    """Layers of torch that run other modules and kernels with a workspace."""

    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.enc, self.rnn = nn.TransformerEncoder(layer, 2), nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, 3)
        self.enc.layers[1].norm1.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        h = self.enc(x)
        return self.head(self.rnn(h)[0].mean(1))


@pytest.mark.slow
def test_inside_of_torchs_own_layers_the_module_and_the_line_that_calls_them_are_named() -> None:
    x = torch.randn(6, 5, 8, generator=torch.Generator().manual_seed(1))
    for eps, module in ((1e-5, ""), (1e-3, "enc.layers.1.norm1")):
        models = made(WithLibraries()), made(lambda eps=eps: WithLibraries(eps))  # type: ignore[misc]
        found = first_difference(*models, Arguments.of(x), Y, cross_entropy)
        assert found.kind == ("arguments" if module else "weights")
        assert found.module == module
        assert found.this is None or found.this.code == "h = self.enc(x)"


@pytest.mark.slow
def test_a_checkpointed_model_computes_the_same() -> None:
    class Checkpointed(WithLibraries):
        def forward(self, x: Tensor) -> Tensor:
            h = checkpoint(self.enc, x, use_reentrant=False)
            return self.head(self.rnn(h)[0].mean(1))

    x = torch.randn(6, 5, 8, generator=torch.Generator().manual_seed(1))
    models = made(WithLibraries()), made(Checkpointed())
    assert first_difference(*models, Arguments.of(x), Y, cross_entropy).kind == "weights"


def test_swapped_variables_are_other_inputs_of_the_same_operation() -> None:
    found = compared(DECODER, "q, k, v = self.qkv", "k, q, v = self.qkv")
    assert found.kind == "inputs"
    assert found.module == "blocks.0.attn"
    assert found.this is not None
    assert found.this.line == line_of(DECODER, "scores = q @")


def test_the_same_operations_with_other_weights_are_told_apart() -> None:
    other = net()
    with torch.no_grad():
        other[0].weight.add_(1.0)  # type: ignore[operator]
        other[1].running_mean.add_(1.0)  # type: ignore[operator]
    found = first_difference(made(net), made(other), Arguments.of(X), Y, cross_entropy)
    assert (found.kind, found.weights) == ("weights", ("0.weight", "1.running_mean"))
    assert found.title.endswith("with different weights: 0.weight and 1 more")


def test_a_frozen_layer_is_missing_in_the_backward() -> None:
    other = net()
    other[3].requires_grad_(False)
    found = first_difference(made(net), made(other), Arguments.of(X), Y, cross_entropy)
    assert (found.kind, found.direction, found.module) == ("graph", "backward", "3")


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return grad * FACTOR[0]


FACTOR = [1.0]


class WithFunction(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor, self.fc = factor, nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        FACTOR[0] = self.factor
        found: Tensor = Halved.apply(self.fc(x))
        return found


def test_a_wrong_backward_is_named_by_its_own_line() -> None:
    models = WithFunction(1.0), WithFunction(0.5)
    found = first_difference(made(models[0]), made(models[1]), Arguments.of(X), Y, cross_entropy)
    assert (found.kind, found.direction) == ("arguments", "backward")
    assert found.other is not None
    assert found.other.code == "return grad * FACTOR[0]"


def test_rounding_is_within_the_tolerance_and_can_be_seen() -> None:
    class Sum(nn.Module):
        def __init__(self, first: bool) -> None:
            super().__init__()
            self.fc, self.first = nn.Linear(4, 3), first

        def forward(self, x: Tensor) -> Tensor:
            y = self.fc(x)
            return y * (1 + 2e-7) if self.first else y * 1.0

    models = made(Sum(True)), made(Sum(False))
    found = first_difference(*models, Arguments.of(X), Y, cross_entropy)
    assert found.kind == "arguments"  # other arguments count bit for bit


# ---------------------------------------------------------------------- the run's method


@pytest.fixture
def run(tmp_path: Path) -> Iterator[tuple[nbp.Run, nn.Sequential]]:
    model = net()
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes=None)
    yield run, model
    run.close()


def test_nothing_of_either_model_or_of_the_generators_changes(
    run: tuple[nbp.Run, nn.Sequential],
) -> None:
    watched, model = run
    other = net()
    other[2] = nn.Dropout(0.25)
    other[3].weight.register_hook(lambda grad: grad)  # type: ignore[operator]
    model[0].weight.grad = torch.ones(8, 4)
    model.eval()
    before = [copy.deepcopy(one.state_dict()) for one in (model, other)]
    random, modes = torch.get_rng_state(), [one.training for one in model.modules()]
    hooks = [len(one._forward_hooks) for one in model.modules()]
    found = watched.first_difference(other, X, Y, cross_entropy)
    assert found.kind == "arguments"
    assert found.module == "2"
    after = [one.state_dict() for one in (model, other)]
    assert all(
        torch.equal(a[name], b[name]) for a, b in zip(before, after, strict=True) for name in a
    )
    assert torch.equal(torch.get_rng_state(), random)
    assert [one.training for one in model.modules()] == modes
    assert [len(one._forward_hooks) for one in model.modules()] == hooks
    assert torch.equal(model[0].weight.grad, torch.ones(8, 4))
    assert all(one.grad is None for one in other.parameters())


def test_a_training_goes_on_bit_for_bit(tmp_path: Path) -> None:
    def trained(looks: bool) -> list[Tensor]:
        model = net()
        torch.manual_seed(5)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        with nbp.watch(model, optimizer, store=tmp_path / f"{looks}.zarr") as run:
            for step in range(4):
                if looks and step == 2:
                    run.first_difference(net, X, Y, cross_entropy)
                loss = cross_entropy(model(X), Y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return [one.detach().clone() for one in (*model.parameters(), *model.buffers())]

    assert all(map(torch.equal, trained(False), trained(True)))


def test_the_other_may_be_a_model_a_function_or_a_run(
    run: tuple[nbp.Run, nn.Sequential], tmp_path: Path
) -> None:
    watched, model = run
    assert not watched.first_difference(copy.deepcopy(model), X, Y, cross_entropy)
    assert not watched.first_difference(net, X, Y, cross_entropy)
    twin = net()
    with nbp.watch(twin, store=tmp_path / "twin.zarr", probes=None) as other:
        assert not watched.first_difference(other, X, Y, cross_entropy)
    with pytest.raises(TypeError, match=r"first_difference\(int\): a torch.nn.Module"):
        watched.first_difference(lambda: 3, X, Y, cross_entropy)  # type: ignore[arg-type]
    with pytest.raises(NotApplicableError, match="no loss is known"):
        watched.first_difference(net, X)


def test_the_result_is_text_and_json(run: tuple[nbp.Run, nn.Sequential]) -> None:
    watched, _ = run
    other = net()
    other[2] = nn.Dropout(0.25)
    with torch.no_grad():
        other[0].weight.add_(1.0)  # type: ignore[operator]
    found = watched.first_difference(other, X, Y, cross_entropy)
    title, this, that, weights = repr(found).splitlines()
    assert title == "The forward first differs at 2: other arguments"
    assert this.startswith("  this:  aten.bernoulli_.float(~) in 2")
    assert that.startswith("  other: aten.bernoulli_.float(~, 0.75) in 2")
    assert weights == "  made equal before: different weights: 0.weight"
    read = json.loads(found.to_json())
    assert (read["module"], read["this"]["operation"]) == ("2", "aten.bernoulli_.float")
    assert "<pre>" in found._repr_html_()


def test_a_loss_with_weights_keeps_its_gradients(run: tuple[nbp.Run, nn.Sequential]) -> None:
    watched, model = run

    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, output: Tensor, targets: Tensor) -> Tensor:
            return self.scale * cross_entropy(output, targets)

    loss = Weighted()

    def with_penalty(output: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(output, targets) + model[0].weight.square().sum()  # type: ignore[operator]

    assert not watched.first_difference(net, X, Y, loss)
    assert not watched.first_difference(net, X, Y, with_penalty)
    assert loss.scale.grad is None
    assert model[0].weight.grad is None


def test_hashes_see_signs_and_permutations_and_match_numpy() -> None:
    values = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
    one = hash_of(values)
    assert one is not None
    assert one.total == 6.5
    assert one.ordered == pytest.approx(1 - 2 * 4 / 3 + 3 * 5 / 3 + 0.5 * 2)
    assert hash_of(values.flatten()) == one
    for other in (-values, values.flip(0), values.t(), values + 1):
        two = hash_of(other)
        assert two is not None
        assert not one.is_near(two, 1e-6)
    near, lost = hash_of(values * (1 + 1e-8)), hash_of(torch.full((2, 2), torch.nan))
    assert near is not None
    assert one.is_near(near, 1e-6)
    assert lost is not None
    assert lost.is_near(lost, 1e-6)
    assert not one.is_near(lost, 1e-6)
    assert hash_of(torch.empty(2, device="meta")) is None


def test_a_program_is_what_python_shows() -> None:
    assert program("def one():\n    return 1\n").one() == 1
