"""A clipping optimizer does what one writes by hand in torch, bit for bit."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

from notebook_probe.errors import NonFiniteGradientError
from notebook_probe.experiment.optimizers import ClipOptimizer
from notebook_probe.experiment.optimizers.clipping import global_norm
from tests.experiment.optimizers.networks import batches, loss_of, network, same, train

CLASSES: dict[type[Optimizer], dict[str, Any]] = {
    torch.optim.Adadelta: {},
    torch.optim.Adafactor: {},
    torch.optim.Adagrad: {},
    torch.optim.Adam: {"lr": 0.01},
    torch.optim.AdamW: {"lr": 0.01},
    torch.optim.Adamax: {"lr": 0.01},
    torch.optim.ASGD: {},
    torch.optim.NAdam: {},
    torch.optim.RAdam: {},
    torch.optim.RMSprop: {},
    torch.optim.Rprop: {},
    torch.optim.SGD: {"lr": 0.01, "momentum": 0.9, "nesterov": True},
}


def clip_by_value(model: nn.Module, value: float) -> None:
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.clamp_(-value, value)


def clip_by_norm(model: nn.Module, value: float) -> None:
    gradients = [one.grad for one in model.parameters() if one.grad is not None]
    norm = float(torch.stack([one.norm() for one in gradients]).norm())
    for one in gradients:
        one.mul_(value / max(norm, value))


@pytest.mark.parametrize("method", ["value", "norm"])
@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_of_torch_is_clipped_as_by_hand(kind: type[Optimizer], method: str) -> None:
    mine, theirs, data = network(), network(), batches(5)
    clip = clip_by_value if method == "value" else clip_by_norm
    train(
        theirs,
        kind(theirs.parameters(), **CLASSES[kind]),
        data,
        before_step=lambda: clip(theirs, 0.5),
    )
    optimizer = ClipOptimizer(
        kind,
        mine.parameters(),
        clipping_method=method,  # type: ignore[arg-type]
        clipping_value=0.5,
        **CLASSES[kind],
    )
    train(mine, optimizer, data)
    assert same(mine, theirs)


def test_a_matrix_optimizer_is_clipped_as_by_hand() -> None:
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("torch.optim.Muon came with torch 2.9")
    models = [nn.Linear(3, 2, bias=False) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    made = [ClipOptimizer(torch.optim.Muon, models[0]), torch.optim.Muon(models[1].parameters())]
    for model, optimizer in zip(models, made, strict=True):
        for batch in batches(3):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            if optimizer is made[1]:
                clip_by_value(model, 1.0)
            optimizer.step()
    assert same(*models)


def test_sparse_gradients_are_clipped_where_they_have_values() -> None:
    def trained(clips: bool) -> Tensor:
        torch.manual_seed(0)
        model = nn.Embedding(5, 2, sparse=True)
        rows = torch.tensor([1, 1, 4])  # twice the same row: what is clipped is the sum
        kind = torch.optim.SparseAdam
        optimizer: Optimizer = (
            ClipOptimizer(kind, model, clipping_value=0.3) if clips else kind(model.parameters())
        )
        for _ in range(3):
            optimizer.zero_grad()
            (model(rows) * torch.tensor([[1.0, -0.2]])).sum().backward()
            if not clips:
                assert model.weight.grad is not None
                whole = model.weight.grad.coalesce()
                model.weight.grad = torch.sparse_coo_tensor(
                    whole.indices(),
                    whole.values().clamp(-0.3, 0.3),
                    whole.shape,
                    check_invariants=True,
                )
            optimizer.step()
        return model.weight.detach()

    assert torch.equal(trained(True), trained(False))


def test_complex_gradients_are_clipped_by_their_parts_and_by_their_moduli() -> None:
    for method, expected in (("value", 1.0 - 1.0j), ("norm", 0.6 - 0.8j)):
        parameter = nn.Parameter(torch.zeros(1, dtype=torch.complex64))
        parameter.grad = torch.tensor([3.0 - 4.0j])
        ClipOptimizer(SGD, [parameter], lr=1.0, clipping_method=method).step()  # type: ignore[arg-type]
        assert -parameter.item() == pytest.approx(expected)


@pytest.mark.parametrize("method", ["value", "norm"])
def test_a_closure_is_clipped_each_time_it_runs(method: str) -> None:
    def trained(clips: bool) -> nn.Module:
        model = network()
        options: dict[str, Any] = {"lr": 0.1, "max_iter": 4}
        lbfgs = torch.optim.LBFGS(model.parameters(), **options)
        optimizer: Optimizer = lbfgs
        if clips:
            optimizer = ClipOptimizer(lbfgs, clipping_method=method)  # type: ignore[arg-type]
        for batch in batches(2):

            def closure(batch: Any = batch) -> Tensor:
                optimizer.zero_grad()
                loss = loss_of(model, batch)
                loss.backward()
                if not clips:
                    (clip_by_value if method == "value" else clip_by_norm)(model, 1.0)
                return loss

            optimizer.step(closure)  # type: ignore[arg-type]
        return model

    assert same(trained(True), trained(False))


def test_without_clipping_it_is_the_optimizer_inside() -> None:
    mine, theirs, data = network(), network(), batches(4)
    train(theirs, SGD(theirs.parameters(), lr=0.001), data)
    train(mine, ClipOptimizer(SGD, mine, lr=0.001, clip=False), data)
    assert same(mine, theirs)


def a_parameter(*gradient: float, dtype: torch.dtype = torch.float32) -> nn.Parameter:
    parameter = nn.Parameter(torch.zeros(len(gradient), dtype=dtype))
    parameter.grad = torch.tensor(gradient, dtype=dtype)
    return parameter


def test_elements_are_clipped_to_plus_minus_v() -> None:
    parameter = a_parameter(-3.0, -0.5, 0.0, 0.7, 2.0)
    ClipOptimizer(SGD, [parameter], lr=1.0, clipping_value=0.6).step()
    assert np.allclose(-parameter.detach(), [-0.6, -0.5, 0.0, 0.6, 0.6])


def test_a_norm_above_v_is_scaled_to_v_over_all_parameters() -> None:
    first, second, without = a_parameter(3.0), a_parameter(4.0), nn.Parameter(torch.ones(1))
    optimizer = ClipOptimizer(
        SGD, [first, second, without], lr=1.0, clipping_method="norm", clipping_value=1.0
    )
    optimizer.step()
    assert (-first.item(), -second.item()) == pytest.approx((0.6, 0.8))
    assert without.item() == 1.0


def test_a_norm_below_v_changes_nothing() -> None:
    parameter = a_parameter(0.3, 0.4)
    ClipOptimizer(SGD, [parameter], lr=1.0, clipping_method="norm", clipping_value=0.6).step()
    assert torch.equal(-parameter.detach(), torch.tensor([0.3, 0.4]))


@pytest.mark.slow
@given(st.lists(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1), min_size=1))
def test_the_global_norm_is_that_of_numpy_in_float64(values: list[list[float]]) -> None:
    tensors = [torch.tensor(one) for one in values]
    expected = float(np.linalg.norm(np.concatenate([np.array(one) for one in values])))
    assert global_norm(tensors) == pytest.approx(expected, rel=1e-5, abs=1e-30)


def test_finite_gradients_of_half_precision_have_a_finite_norm() -> None:
    tensors = [torch.full((4,), 60000.0, dtype=torch.float16)]
    assert global_norm(tensors) == 120000.0
    assert global_norm([torch.full((4,), 3e38)]) == pytest.approx(6e38)
    assert global_norm([]) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_norm_that_is_not_finite_raises(bad: float) -> None:
    parameter = a_parameter(1.0, bad)
    optimizer = ClipOptimizer(SGD, [parameter], lr=1.0, clipping_method="norm")
    with pytest.raises(NonFiniteGradientError, match="on_nonfinite='skip'"):
        optimizer.step()
    assert torch.equal(parameter.detach(), torch.zeros(2))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_such_an_update_is_left_out_on_demand_and_counted(bad: float) -> None:
    parameter = a_parameter(1.0, bad)
    optimizer = ClipOptimizer(
        Adam, [parameter], lr=1.0, clipping_method="norm", on_nonfinite="skip"
    )
    ended: list[Any] = []
    optimizer.register_step_post_hook(lambda *_: ended.append(1))
    optimizer.step()
    assert torch.equal(parameter.detach(), torch.zeros(2))
    assert (optimizer.n_skipped, ended, dict(optimizer.state)) == (1, [], {})
    parameter.grad = torch.ones(2)
    optimizer.step()
    assert parameter.abs().min() > 0.5
    assert (optimizer.n_skipped, ended) == (1, [1])


def test_elements_are_clipped_whatever_the_others_are() -> None:
    parameter = a_parameter(math.inf, 0.5)
    ClipOptimizer(SGD, [parameter], lr=1.0, clipping_value=2.0).step()
    assert torch.equal(-parameter.detach(), torch.tensor([2.0, 0.5]))


def test_a_closure_whose_first_run_is_not_finite_leaves_the_update_out() -> None:
    parameter = a_parameter(0.0)
    optimizer = ClipOptimizer(SGD, [parameter], lr=1.0, clipping_method="norm", on_nonfinite="skip")

    def closure() -> float:
        parameter.grad = torch.tensor([math.nan])
        return 3.0

    assert optimizer.step(closure) == 3.0
    assert (parameter.item(), optimizer.n_skipped) == (0.0, 1)


def test_a_later_run_of_a_closure_cannot_be_left_out() -> None:
    parameter = a_parameter(0.0)
    optimizer = ClipOptimizer(
        torch.optim.LBFGS, [parameter], clipping_method="norm", on_nonfinite="skip"
    )
    runs: list[int] = []

    def closure() -> float:
        parameter.grad = torch.tensor([math.nan if runs else 1.0])
        runs.append(1)
        return 1.0

    with pytest.raises(NonFiniteGradientError, match="run 2 of a closure"):
        optimizer.step(closure)


def test_the_global_norm_is_printed_before_it_is_clipped(capsys: Any) -> None:
    parameter = a_parameter(3.0, 4.0)
    ClipOptimizer(SGD, [parameter], lr=1.0, print_global_norm=True).step()
    assert capsys.readouterr().out == "global norm of the gradients: 5\n"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"clipping_method": "Norm"}, ValueError, "allowed: 'value', 'norm'"),
        ({"clipping_value": 0.0}, ValueError, "a positive number"),
        ({"clipping_value": True}, ValueError, "a positive number"),
        ({"clipping_value": math.inf}, ValueError, "a positive number"),
        ({"on_nonfinite": "ignore"}, ValueError, "'raise', 'skip'"),
        ({"clip": 1}, TypeError, "clip=1"),
        ({"lr": [0.1, 0.2]}, ValueError, "one optimizer class"),
    ],
)
def test_what_cannot_be_is_refused(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        ClipOptimizer(SGD, [a_parameter(1.0)], **{"lr": 0.1, **options})


def test_what_makes_no_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match="a class of"):
        ClipOptimizer("SGD", [a_parameter(1.0)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="without parameters"):
        ClipOptimizer(SGD, lr=0.1)
    with pytest.raises(TypeError, match="makes list"):
        ClipOptimizer(lambda params: [], [a_parameter(1.0)])  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="made already"):
        ClipOptimizer(SGD([a_parameter(1.0)], lr=0.1), lr=0.2)


def test_the_order_of_arguments_that_others_have_is_told() -> None:
    with pytest.raises(TypeError, match=r"parameters come second; clip and names are keywords"):
        ClipOptimizer(torch.optim.SGD, True, None, [torch.zeros(1, requires_grad=True)])
