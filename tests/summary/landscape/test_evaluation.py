"""Losses over planes that are known in closed form, and that nothing else is different after."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError, QuantityError
from notebook_probe.summary.landscape.evaluation import Evaluated, evaluate
from notebook_probe.summary.landscape.mean_loss import MeanLoss, kept_batches
from notebook_probe.summary.landscape.planes import Plane, result_plane, train_plane
from notebook_probe.summary.landscape.progress import LandscapeProgress
from notebook_probe.summary.landscape.snapshot import ModelSnapshot
from tests.graph.untouched import assert_unchanged
from tests.graph.untouched import state_of as everything_of
from tests.models import ConvNet, Encoder, HooksItself


class Bowl(nn.Module):
    """``sum c w^2`` for an input of ones: what the loss is anywhere is known."""

    curvature: Tensor

    def __init__(self, curvature: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(len(curvature), dtype=torch.float64))
        self.register_buffer("curvature", curvature)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.sum() * (self.curvature * self.weight.square()).sum()


CURVATURE = torch.tensor([1.0, 4.0, 0.5, 2.0, 3.0], dtype=torch.float64)


def own_output(outputs: Tensor, targets: Any) -> Tensor:
    return outputs.sum()


def bowl_path(n: int = 5) -> tuple[Bowl, list[ModelSnapshot]]:
    model, kept = Bowl(CURVATURE), []
    for number in range(1, n + 1):
        with torch.no_grad():
            model.weight.add_(torch.randn(5, dtype=torch.float64))
        kept.append(ModelSnapshot.of(model, number))
    return model, kept


def ones(n: int = 1) -> list[tuple[Tensor, Tensor]]:
    return [(torch.ones(1, dtype=torch.float64), torch.zeros(1))] * n


def test_a_bowls_landscape_is_the_formula() -> None:
    model, kept = bowl_path()
    plane = train_plane(kept, 6)
    found = evaluate(plane, MeanLoss(model, kept_batches(ones(), own_output, 1)), kept)
    own, c = kept[-1].parameters["weight"].numpy(), CURVATURE.numpy()
    first, second = plane.first[0].numpy(), plane.second[0].numpy()
    want = [
        [np.sum(c * (own + x * first + y * second) ** 2) for x in plane.grid.xs]
        for y in plane.grid.ys
    ]
    np.testing.assert_allclose(found.losses, want, rtol=1e-12)
    assert found.at_origin == pytest.approx(np.sum(c * own**2), rel=1e-12)
    walked = [np.sum(c * one.parameters["weight"].numpy() ** 2) for one in kept]
    np.testing.assert_allclose(found.along_path, walked, rtol=1e-12)
    assert (found.n_done, found.n_points) == (36, 36)


def test_in_a_plane_of_three_snapshots_the_path_has_the_losses_of_the_plane() -> None:
    model, kept = bowl_path(3)
    plane = train_plane(kept, 3)
    assert plane.path is not None
    found = evaluate(plane, MeanLoss(model, kept_batches(ones(), own_output, 1)), kept)
    own, c = kept[-1].parameters["weight"].numpy(), CURVATURE.numpy()
    for (x, y), loss in zip(plane.path.places, found.along_path, strict=True):
        at = own + x * plane.first[0].numpy() + y * plane.second[0].numpy()
        assert loss == pytest.approx(np.sum(c * at**2), rel=1e-9)


def conv() -> tuple[ConvNet, list[tuple[Tensor, Tensor]]]:
    torch.manual_seed(0)
    return ConvNet(), [(torch.randn(4, 1, 6, 6), torch.randint(3, (4,))) for _ in range(5)]


def small(model: nn.Module, kept: ModelSnapshot | None = None) -> Plane:
    return result_plane(kept or ModelSnapshot.of(model, 1), 3)


def test_a_loss_is_the_mean_over_fixed_batches_in_evaluation_mode() -> None:
    model, batches = conv()
    loss = MeanLoss(model, kept_batches(batches, cross_entropy, 14))  # 14 // 4 batches
    plane = small(model)
    found = evaluate(plane, loss)
    other = copy.deepcopy(model).eval()
    with torch.no_grad():
        for own, one, two in zip(
            (own for name, own in other.named_parameters() if name in plane.origin.moved),
            plane.first,
            plane.second,
            strict=True,
        ):
            own.add_(-1.0 * one + 1.0 * two)
        want = np.mean([float(cross_entropy(other(x), y).double()) for x, y in batches[:3]])
    assert found.losses[2, 0] == pytest.approx(want, rel=1e-5), "dims are (y, x)"


@pytest.mark.parametrize(("samples", "want"), [(1, 1), (3, 1), (4, 1), (8, 2), (11, 2), (999, 5)])
def test_so_many_samples_are_so_many_batches(samples: int, want: int) -> None:
    _, batches = conv()
    assert len(kept_batches(batches, cross_entropy, samples)) == want


def test_no_more_batches_are_drawn_than_are_needed() -> None:
    _, batches = conv()
    source = iter(batches)
    kept_batches(source, cross_entropy, 8)
    assert len([*source]) == 3


def test_the_plane_has_the_buffers_of_its_origin_and_the_path_its_own() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    batches, kept = [(torch.randn(8, 3), torch.randn(8, 3))], []
    for number in range(3):
        with torch.no_grad():
            model(5 * torch.randn(32, 3))
            for own in model.parameters():
                own.add_(torch.randn_like(own))
        kept.append(ModelSnapshot.of(model, number))
    with torch.no_grad():
        model(100 * torch.randn(32, 3))
    found = evaluate(
        train_plane(kept, 3), MeanLoss(model, kept_batches(batches, mse_loss, 8)), kept
    )
    for one, loss in zip(kept, found.along_path, strict=True):
        other = copy.deepcopy(model).eval()
        other.load_state_dict({**one.parameters, **one.buffers})
        with torch.no_grad():
            assert loss == pytest.approx(float(mse_loss(other(batches[0][0]), batches[0][1])))
    assert found.at_origin == found.along_path[-1]


# ------------------------------------------------------------------ nothing is left behind


class Fragile(nn.Module):
    """Draws, counts and writes into a buffer in its forward, and raises at one of its calls."""

    seen: Tensor
    scratch: Tensor

    def __init__(self, error: BaseException | None = None, at: int = -1) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2))
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)
        self.n_calls, self.history = 0, [0.0]
        self._error, self._at = error, at

    def forward(self, inputs: Tensor) -> Tensor:
        self.n_calls += 1
        self.seen += 1
        self.scratch.add_(torch.rand(2))
        self.history.append(float(np.random.rand()))  # noqa: NPY002
        calls.append(1)
        if len(calls) == self._at:
            assert self._error is not None
            raise self._error
        return self.body(inputs)


calls: list[int] = []


def state_of(model: Fragile, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    return {
        "values": {n: v.detach().clone() for n, v in model.state_dict(keep_vars=True).items()},
        "ids": [id(value) for value in (*model.parameters(), *model.buffers())],
        "grads": [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        "wants": [p.requires_grad for p in model.parameters()],
        "modes": [part.training for part in model.modules()],
        "plain": [model.n_calls, [*model.history], model.scratch.clone()],
        "optimizer": copy.deepcopy(optimizer.state_dict()),
        "draws": (torch.get_rng_state(), np.random.get_state(legacy=False)),  # noqa: NPY002
    }


def assert_same(found: Any, want: Any) -> None:
    if isinstance(want, Tensor):
        assert torch.equal(found, want)
    elif isinstance(want, dict):
        assert found.keys() == want.keys()
        for name in want:
            assert_same(found[name], want[name])
    elif isinstance(want, list | tuple):
        assert len(found) == len(want)
        for one, other in zip(found, want, strict=True):
            assert_same(one, other)
    elif isinstance(want, np.ndarray):
        assert np.array_equal(found, want)
    else:
        assert found == want


def trained(error: BaseException | None, at: int) -> tuple[Fragile, torch.optim.Optimizer]:
    model = Fragile(error, at)
    calls[:] = [0] * 999
    model.body[3].bias.requires_grad_(False)
    model.body[1].eval()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)
    model(torch.randn(6, 3)).square().sum().backward()
    optimizer.step()
    calls.clear()
    return model, optimizer


@pytest.mark.slow
@settings(max_examples=40)
@given(
    at=st.integers(1, 14),
    error=st.sampled_from([None, ValueError("no"), KeyboardInterrupt(), SystemExit()]),
    grad=st.booleans(),
)
def test_everything_is_as_it_was_bit_for_bit_wherever_something_raises(
    at: int, error: BaseException | None, grad: bool
) -> None:
    model, optimizer = trained(error, at if error is not None else -1)
    loss = MeanLoss(model, kept_batches([(torch.randn(6, 3), torch.randn(6, 2))], mse_loss, 6))
    plane, before = small(model), state_of(model, optimizer)
    with torch.set_grad_enabled(grad):
        raised: list[BaseException | None] = [None]
        try:
            evaluate(plane, loss, [plane.origin])
        except BaseException as stopped:
            raised = [stopped]
        assert raised[0] is (error if at <= 11 else None)
        assert torch.is_grad_enabled() == grad
    assert_same(state_of(model, optimizer), before)


def test_a_model_that_is_hooked_by_its_first_call_is_hooked_once() -> None:
    model, batch = HooksItself(), (torch.ones(2, 4), torch.ones(2, 2))
    before = everything_of(model)
    evaluate(small(model), MeanLoss(model, kept_batches([batch], mse_loss, 2)))
    assert_unchanged(model, before)
    model(batch[0])
    assert model.heard == ["Linear", "ReLU"]


def test_training_goes_on_as_if_there_had_been_no_landscape() -> None:
    def train(between: Callable[[nn.Module], object]) -> list[Tensor]:
        torch.manual_seed(1)
        model = Encoder()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(4):
            words, labels = torch.randint(11, (6, 5)), torch.randint(3, (6, 5))
            optimizer.zero_grad()
            cross_entropy(model(words).flatten(0, 1), labels.flatten()).backward()
            between(model)
            optimizer.step()
            between(model)
        return [value.detach() for value in model.parameters()]

    words, labels = torch.randint(11, (6, 5)), torch.randint(3, (6, 5))

    def look(model: nn.Module) -> Evaluated:
        def of_words(outputs: Tensor, targets: Tensor) -> Tensor:
            return cross_entropy(outputs.flatten(0, 1), targets.flatten())

        return evaluate(small(model), MeanLoss(model, kept_batches([(words, labels)], of_words, 6)))

    assert_same(train(look), train(lambda model: None))


def test_probes_see_nothing_of_it(tmp_path: Any) -> None:
    def train(looks: bool) -> tuple[list[float], Any]:
        model, batches = conv()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        store = tmp_path / f"{looks}.zarr"
        with nbp.watch(model, optimizer, store=store, probes={"*": ["output_mean"]}) as run:
            for x, y in batches:
                optimizer.zero_grad()
                cross_entropy(model(x), y).backward()
                optimizer.step()
                if looks:
                    loss = MeanLoss(model, kept_batches(batches, cross_entropy, 4))
                    evaluate(small(model), loss)
        return run.series("conv1", "output_mean").values.tolist(), run.controls.status_head().step

    assert train(True) == train(False)


# ------------------------------------------------------------------ what is told, and when it ends


def test_the_first_that_is_told_is_what_it_will_take() -> None:
    model, batches = conv()
    told: list[LandscapeProgress] = []
    loss = MeanLoss(model, kept_batches(batches, cross_entropy, 4))
    evaluate(small(model), loss, what="result landscape", tell=told.append)
    assert [one.done for one in told] == [*range(1, 11)]
    assert {one.total for one in told} == {10}
    assert str(told[0]).startswith("result landscape: 1 of 10 losses, about")
    assert str(told[-1]) == "result landscape: 10 of 10 losses, done"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0001, "1 s"), (0.05, "80 s"), (0.5, "13 min"), (60.0, "27 h")]
)
def test_how_long_is_said_in_words(seconds: float, words: str) -> None:
    assert str(LandscapeProgress("it", 1, 1601, seconds)).endswith(f"about {words} to go")


def test_it_is_cancelled_between_two_points_from_another_thread() -> None:
    model, batches = conv()
    cancelled = threading.Event()

    def tell(progress: LandscapeProgress) -> None:
        if progress.done == 5:
            other = threading.Thread(target=cancelled.set)
            other.start()
            other.join()

    loss = MeanLoss(model, kept_batches(batches, cross_entropy, 4))
    found = evaluate(small(model), loss, tell=tell, is_cancelled=cancelled.is_set)
    assert found.n_done == 4, "beside the origin"
    assert np.isfinite(found.losses.T.ravel()).tolist() == 4 * [True] + 5 * [False]


def test_losses_that_are_not_finite_stay_what_they_are() -> None:
    class Steep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.full((1, 1), 4e4))

        def forward(self, inputs: Tensor) -> Tensor:
            return (self.weight.half() * inputs).sum() + (0 * (self.weight - 1).log()).sum()

    model = Steep()
    batches = [(torch.ones(1, dtype=torch.float16), torch.zeros(1))]
    found = evaluate(small(model), MeanLoss(model, kept_batches(batches, own_output, 1)))
    kinds = {("nan" if np.isnan(one) else str(np.isfinite(one))) for one in found.losses.ravel()}
    assert kinds == {"nan", "True", "False"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_every_precision_is_evaluated_in_its_own(dtype: torch.dtype) -> None:
    model = nn.Linear(3, 2).to(dtype)
    batches = [(torch.randn(4, 3, dtype=dtype), torch.randn(4, 2, dtype=dtype))]
    seen: set[torch.dtype] = set()
    model.register_forward_hook(lambda module, args, output: seen.add(output.dtype))
    found = evaluate(small(model), MeanLoss(model, kept_batches(batches, mse_loss, 4)))
    assert np.isfinite(found.losses).all()
    assert seen == {dtype}


def test_what_does_not_fit_is_one_clear_error() -> None:
    model, batches = conv()
    loss = MeanLoss(model, kept_batches(batches, cross_entropy, 4))
    with pytest.raises(CheckpointError, match="snapshot 7 does not fit ConvNet: missing there"):
        evaluate(small(model, ModelSnapshot.of(nn.Linear(3, 2), 7)), loss)
    with pytest.raises(ValueError, match="there is none"):
        kept_batches([], cross_entropy, 4)
    with pytest.raises(ValueError, match="a batch or more"):
        MeanLoss(model, [])
    each = MeanLoss(model, kept_batches(batches, lambda out, y: out, 4))
    with pytest.raises(QuantityError, match="one real number"):
        evaluate(small(model), each)


def test_shared_parameters_move_together() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            self.two.weight = self.one.weight

        def forward(self, inputs: Tensor) -> Tensor:
            return self.two(self.one(inputs))

    model, x = Tied(), torch.randn(4, 3)
    plane = small(model)
    found = evaluate(plane, MeanLoss(model, kept_batches([(x, x)], mse_loss, 4)))
    moved = model.one.weight.detach() + plane.first[0] + plane.second[0]
    assert found.losses[2, 2] == pytest.approx(float(mse_loss(x @ moved.T @ moved.T, x)), rel=1e-5)
