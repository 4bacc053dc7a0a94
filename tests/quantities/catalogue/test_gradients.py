"""Quantities of the micro-batches of a step, against float64 by hand from an unwatched twin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import UnreadableError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.reduce.stat import Stat
from tests.digits import digits

Array: TypeAlias = npt.NDArray[np.float64]
Micro: TypeAlias = "list[dict[str, Array]]"
"""Of each micro-batch: parameter -> gradient."""

STEPS, N_MICRO = 5, 4


class ConvAndHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(2, 4, 3), nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.conv(x).tanh().flatten(1))
        return found


def train(
    model: ConvAndHead, n_micro: int = N_MICRO, also: Callable[[Tensor], None] | None = None
) -> None:
    """Some accumulated steps, clipped; every micro-batch has a loss of its own size."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(n_micro):
            x = torch.randn(3, 2, 6, 6, generator=generator)
            loss = (model(x) - x.flatten(1)[:, :3]).square().mean() / n_micro
            if also is not None:
                also(loss)
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


def see() -> list[Micro]:
    """The gradient of each backward, kept by an unwatched twin's tensor hooks."""
    torch.manual_seed(0)
    model, seen = ConvAndHead(), dict[str, list[Array]]()

    def keep(name: str) -> Callable[[Tensor], None]:
        return lambda grad: seen.setdefault(name, []).append(grad.double().numpy().copy())

    for name, value in model.named_parameters():
        value.register_hook(keep(name))
    train(model)
    each = [{name: seen[name][i] for name in seen} for i in range(STEPS * N_MICRO)]
    return [each[i : i + N_MICRO] for i in range(0, len(each), N_MICRO)]


def rows(micro: Micro, path: str) -> Array:
    """One row per micro-batch: everything below a path."""
    inside = [name for name in micro[0] if not path or name.startswith(path)]
    return np.stack([np.concatenate([one[name].ravel() for name in inside]) for one in micro])


def trace(grads: Array) -> float:
    """Of the covariance, by its definition."""
    return float(np.var(grads, axis=0, ddof=1).sum())


def noise_scale(steps: list[Micro], path: str) -> list[float]:
    """Ratio of two running means; the bias of their beginning cancels."""
    noise = signal = 0.0
    found = []
    for micro in steps:
        grads = rows(micro, path)
        noise = 0.95 * noise + 0.05 * trace(grads)
        pairs = [float(a @ b) for a, b in itertools.permutations(grads, 2)]
        signal = 0.95 * signal + 0.05 * float(np.mean(pairs))  # E of g_i g_j is ||G||^2
        found.append(noise / signal if signal > 0 else math.nan)
    return found


def test_of_norms(micro: Micro, path: str) -> float:
    grads = rows(micro, path)
    return math.sqrt(trace(grads) / len(grads)) / float(np.linalg.norm(grads.mean(axis=0)))


test_of_norms.__test__ = False  # type: ignore[attr-defined]


def test_of_inner_products(micro: Micro, path: str) -> float:
    """Bollapragada et al., eq. 2.6."""
    grads = rows(micro, path)
    mean = grads.mean(axis=0)
    variance = sum((each @ mean - mean @ mean) ** 2 for each in grads) / (len(grads) - 1)
    return math.sqrt(variance / len(grads)) / float(mean @ mean)


def test_of_orthogonality(micro: Micro, path: str) -> float:
    """Bollapragada et al., eq. 3.3."""
    grads = rows(micro, path)
    mean = grads.mean(axis=0)
    across = [each - (each @ mean) / (mean @ mean) * mean for each in grads]
    variance = sum(each @ each for each in across) / (len(grads) - 1)
    return math.sqrt(variance / len(grads) / float(mean @ mean))


test_of_inner_products.__test__ = test_of_orthogonality.__test__ = False  # type: ignore[attr-defined]


def gsnr(micro: Micro, path: str) -> float:
    grads = rows(micro, path)
    return float(np.mean(grads.mean(axis=0) ** 2 / np.var(grads, axis=0, ddof=1)))


def stiffness(micro: Micro, path: str) -> float:
    grads = rows(micro, path)
    units = grads / np.linalg.norm(grads, axis=1, keepdims=True)
    return float(np.mean([a @ b for a, b in itertools.combinations(units, 2)]))


@pytest.fixture(scope="module")
def seen() -> list[Micro]:
    return see()


NAMES = [
    *("gradient_noise_scale", "norm_test", "inner_product_test", "orthogonality_test"),
    *("gsnr", "early_stopping_evidence", "stiffness"),
]
PLACES = ["", "conv", "head", "head.weight"]


def recorded(folder: Path, **how: Any) -> Any:
    torch.manual_seed(0)
    model = ConvAndHead()
    with nbp.watch(model, store=folder / "run.zarr", probes=dict.fromkeys(PLACES, NAMES)) as run:
        train(model, **how)
        assert not run.status().errors
    return run.data.load()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return recorded(Path(tmp_path_factory.mktemp("runs")))


@pytest.mark.parametrize("path", PLACES)
def test_the_noise_of_micro_batches_is_that_of_their_own_gradients(
    path: str, data: Any, seen: list[Micro]
) -> None:
    at = data.sel(module=path or "(root)")
    np.testing.assert_allclose(at.gradient_noise_scale, noise_scale(seen, path), rtol=1e-4)
    want = [test_of_norms(micro, path) for micro in seen]
    np.testing.assert_allclose(at.norm_test, want, rtol=1e-4)
    want = [test_of_inner_products(micro, path) for micro in seen]
    np.testing.assert_allclose(at.inner_product_test, want, rtol=1e-4)
    want = [test_of_orthogonality(micro, path) for micro in seen]
    np.testing.assert_allclose(at.orthogonality_test, want, rtol=1e-4)
    np.testing.assert_array_equal(at.accumulations, N_MICRO)


@pytest.mark.parametrize("path", PLACES)
def test_the_agreement_of_micro_batches_is_that_of_their_own_gradients(
    path: str, data: Any, seen: list[Micro]
) -> None:
    at = data.sel(module=path or "(root)")
    np.testing.assert_allclose(at.gsnr, [gsnr(micro, path) for micro in seen], rtol=1e-3)
    evidence = [1 - N_MICRO * gsnr(micro, path) for micro in seen]
    np.testing.assert_allclose(at.early_stopping_evidence, evidence, rtol=1e-3)
    np.testing.assert_allclose(at.stiffness, [stiffness(m, path) for m in seen], rtol=1e-4)


def test_a_gradient_that_is_only_looked_at_is_no_micro_batch(data: Any, tmp_path: Path) -> None:
    """A penalty on the gradient, or somebody's own diary, runs the hooks of parameters too."""

    torch.manual_seed(0)
    model = ConvAndHead()

    def penalty(loss: Tensor) -> None:
        torch.autograd.grad(loss, [*model.parameters()], retain_graph=True)

    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": NAMES, "conv": NAMES}) as run:
        train(model, also=penalty)
    for path in ("(root)", "conv"):
        for name in NAMES:
            found, want = run.data[name].sel(module=path), data[name].sel(module=path)
            np.testing.assert_allclose(found, want, rtol=1e-5)


def test_without_accumulation_there_is_nothing_to_compare(tmp_path: Path) -> None:
    model = ConvAndHead()
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": NAMES}) as run:
        train(model, n_micro=1)
        notes = {probe.quantity: probe.note for probe in run.probes()}
        assert not run.status().errors
    found = run.data
    assert all(found[name].isnull().all() for name in NAMES)
    assert (found.accumulations == 1).any()
    assert all("micro-batches" in note for note in notes.values()), notes


def test_the_noise_scale_of_gaussian_gradients_is_that_of_their_distribution() -> None:
    """Noise of variance 4 in 50 dimensions round a gradient of length 2: 4 * 50 / 2**2."""
    generator = np.random.default_rng(0)
    window = as_quantity("gradient_noise_scale")()
    true = np.full(50, 2 / math.sqrt(50))
    window.reset()
    values = []
    for _ in range(400):
        grads = true + 2 * generator.standard_normal((8, 50))
        window.update(
            Stat(grads.size, float((grads**2).sum())),
            Stat(50, float((grads.sum(axis=0) ** 2).sum())),
        )
        values.append(window.compute() or math.nan)
    assert np.nanmedian(values[40:]) == pytest.approx(50, rel=0.15)


@pytest.mark.slow
def test_the_noise_scale_of_handwritten_digits_is_that_of_their_own_gradients(
    tmp_path: Path,
) -> None:
    """With a rate of zero, against the covariance of the gradients of all 1797 images by hand."""
    images, labels = digits()
    torch.manual_seed(0)
    model, generator = nn.Linear(64, 10), torch.Generator().manual_seed(0)
    error = model(images).double().softmax(1) - nn.functional.one_hot(labels, 10)
    outer = error[:, :, None] * images.double()[:, None, :]
    each = torch.cat([outer.flatten(1), error], dim=1).detach().numpy()
    exact = each.var(axis=0).sum() / np.sum(each.mean(axis=0) ** 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    probes = {"": ["gradient_noise_scale"]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes) as run:
        for _ in range(150):
            optimizer.zero_grad()
            for _ in range(4):
                some = torch.randint(len(images), (16,), generator=generator)
                nn.functional.cross_entropy(model(images[some]), labels[some]).backward()
            optimizer.step()
    found = 16 * run.series("", "gradient_noise_scale")[50:].median()
    assert float(found) == pytest.approx(exact, rel=0.1)


class Experts(nn.Module):
    """Which of the two is used depends on the micro-batch."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.head = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor, first: bool) -> Tensor:
        found: Tensor = self.head((self.one if first else self.other)(x))
        return found


def test_parameters_without_a_part_in_some_micro_batch_have_no_angles(tmp_path: Path) -> None:
    """And those with a part in all have: what is missing is missing where it is."""
    model = Experts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tests = ["norm_test", "inner_product_test", "orthogonality_test", "stiffness"]
    probes = {"": tests, "head": tests}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes) as run:
        for _ in range(2):
            for first in (True, True, False):
                model(torch.randn(4, 3), first).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert not run.status().errors
    for name in tests:
        assert run.series("", name).isnull().all()
        assert np.isfinite(run.series("head", name)).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_step_that_is_not_finite_leaves_the_noise_scale_as_it_was(bad: float) -> None:
    window = as_quantity("gradient_noise_scale")()
    window.update(Stat(20, 6.0), Stat(10, 10.0))
    before = window.compute()
    window.update(Stat(20, bad), Stat(10, bad))
    assert window.compute() == before
    with pytest.raises(UnreadableError, match="broken gradients"):
        as_quantity("norm_test")(Stat(20, bad), Stat(10, bad))
