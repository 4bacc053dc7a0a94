"""Logits, alone and beside the right answers, against numpy and scikit-learn's definitions."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import QuantityError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue.labelled_logits import labelled
from notebook_probe.quantities.catalogue.predictions import predictions

Array: TypeAlias = npt.NDArray[np.float64]

ALONE = ("logit_logsumexp", "prediction_entropy", "confidence")
JUDGED = ("accuracy", "el2n", "ece")


FLOAT8 = torch.float8_e4m3fn


def normal(seed: int, *shape: int) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def classes(seed: int, n: int, *shape: int) -> Tensor:
    return torch.randint(n, shape, generator=torch.Generator().manual_seed(seed))


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    found: Array = powers / powers.sum(1, keepdims=True)
    return found


def alone(logits: Array) -> dict[str, float]:
    """Of logits (n, class)."""
    shares = softmax(logits)
    return {
        "logit_logsumexp": float(np.log(np.exp(logits).sum(1)).mean()),
        "prediction_entropy": float(-(shares * np.log(shares)).sum(1).mean()),
        "confidence": float(shares.max(1).mean()),
    }


def judged(logits: Array, labels: Array) -> dict[str, float]:
    shares, right = softmax(logits), logits.argmax(1) == labels
    off, sure = shares - np.eye(logits.shape[1])[labels.astype(int)], shares.max(1)
    edges = np.linspace(0, 1, 16)
    bins = [(sure > low) & (sure <= high) for low, high in itertools.pairwise(edges)]
    gaps = [b.mean() * abs(right[b].mean() - sure[b].mean()) for b in bins if b.any()]
    return {
        "accuracy": float(right.mean()),
        "el2n": float(np.linalg.norm(off, axis=1).mean()),
        "ece": float(sum(gaps)),
    }


def computed(name: str, *batches: tuple[Tensor, Tensor]) -> float:
    window = as_quantity(name)()
    window.reset()
    for output, targets in batches:
        window.update(output, targets)
    value = window.compute()
    return math.nan if value is None else float(value)


def close(found: float, want: float) -> None:
    assert found == pytest.approx(want, rel=1e-5, abs=1e-6)


KINDS: dict[str, tuple[nn.Module, tuple[int, ...], int]] = {
    "a linear layer": (nn.Linear(3, 5), (7, 5), 1),
    "positions of a sequence": (nn.Linear(3, 5), (2, 4, 5), 2),
    "a convolution": (nn.Conv2d(3, 5, 1), (2, 5, 3, 4), 1),
    "one sample": (nn.Linear(3, 5), (5,), 0),
    "a model of images": (nn.Sequential(), (2, 5, 3, 4), 1),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, FLOAT8])
def test_logits_speak_of_scale_doubt_and_confidence(kind: str, dtype: torch.dtype) -> None:
    module, shape, axis = KINDS[kind]
    logits = normal(1, *shape).to(dtype)
    rows = np.moveaxis(logits.double().numpy(), axis, -1).reshape(-1, 5)
    found = predictions(logits, module)
    for name, want in alone(rows).items():
        close(float(as_quantity(name)(found)), want)


@pytest.mark.parametrize(
    ("shape", "positions", "axis"),
    [((9, 4), (9,), 1), ((3, 4, 5), (3, 5), 1), ((3, 5, 4), (3, 5), 2)],
)
def test_predictions_are_judged_wherever_the_classes_are(
    shape: tuple[int, ...], positions: tuple[int, ...], axis: int
) -> None:
    logits, labels = normal(2, *shape), classes(3, 4, *positions)
    rows = np.moveaxis(logits.double().numpy(), axis, -1).reshape(-1, 4)
    for name, want in judged(rows, labels.numpy().reshape(-1)).items():
        close(computed(name, (logits, labels)), want)


@pytest.mark.parametrize("shape", [(8,), (8, 1)])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool])
def test_a_single_logit_is_that_of_class_1(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    logit, labels = normal(4, *shape), classes(5, 2, 8)
    rows = np.stack([np.zeros(8), logit.double().numpy().reshape(-1)], 1)
    for name, want in judged(rows, labels.numpy()).items():
        close(computed(name, (logit, labels.to(dtype))), want)
    if len(shape) == 2:
        for name, want in alone(rows).items():
            close(float(as_quantity(name)(predictions(logit, nn.Linear(3, 1)))), want)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(2, 6), st.integers(1, 29))
def test_parts_together_are_as_the_whole(seed: int, n: int, k: int, cut: int) -> None:
    logits, labels = normal(seed, n, k), classes(seed + 1, k, n)
    parts = [(logits[:cut], labels[:cut]), (logits[cut:], labels[cut:])]
    for name in JUDGED:
        close(computed(name, *parts), computed(name, (logits, labels)))
    whole, one, other = (predictions(x, nn.Linear(2, k)) for x in (logits, *(p[0] for p in parts)))
    for name in ALONE:
        close(float(as_quantity(name)(one.merge(other))), float(as_quantity(name)(whole)))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(2, 6), st.floats(-50, 50))
def test_what_is_bounded_stays_so_and_a_shift_changes_nothing(
    seed: int, n: int, k: int, shift: float
) -> None:
    logits, labels = normal(seed, n, k), classes(seed + 1, k, n)
    found = {name: computed(name, (logits, labels)) for name in JUDGED}
    assert 0 <= found["accuracy"] <= 1
    assert 0 <= found["ece"] <= 1
    assert 0 <= found["el2n"] <= math.sqrt(2) + 1e-6
    one, moved = (predictions(x, nn.Linear(2, k)) for x in (logits, logits + shift))
    values, others = ([float(as_quantity(name)(x)) for name in ALONE] for x in (one, moved))
    assert 0 <= values[1] <= math.log(k) + 1e-6
    assert 1 / k - 1e-6 <= values[2] <= 1 + 1e-6
    assert others[1:] == pytest.approx(values[1:], rel=1e-3, abs=1e-4)
    assert others[0] == pytest.approx(values[0] + shift, rel=1e-4, abs=1e-4)


def test_labels_that_stand_for_none_do_not_count() -> None:
    logits, labels = normal(6, 6, 3), torch.tensor([0, -100, 2, 1, -1, 7])
    kept = torch.tensor([0, 2, 3])
    for name in JUDGED:
        close(computed(name, (logits, labels)), computed(name, (logits[kept], labels[kept])))
        assert math.isnan(computed(name, (logits, torch.full((6,), -100))))


ODD: dict[str, tuple[Tensor, dict[str, float]]] = {
    "NaN": (torch.tensor([[1.0, math.nan]]), dict.fromkeys(ALONE, math.nan)),
    "empty": (torch.zeros(0, 3), dict.fromkeys(ALONE, math.nan)),
    "forbidden classes": (
        torch.tensor([[0.0, 0.0, -math.inf]]),
        {"logit_logsumexp": math.log(2), "prediction_entropy": math.log(2), "confidence": 0.5},
    ),
    "huge": (
        torch.tensor([[1e30, 0.0]]),
        {"logit_logsumexp": 1e30, "prediction_entropy": 0.0, "confidence": 1.0},
    ),
    "integers": (torch.tensor([[0, 0]]), {"confidence": 0.5}),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_logits_give_what_is_documented(kind: str) -> None:
    tensor, want = ODD[kind]
    for name, value in want.items():
        found = float(as_quantity(name)(predictions(tensor, nn.Linear(2, 2))))
        np.testing.assert_allclose(found, value, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, FLOAT8])
def test_short_floats_are_judged_by_the_values_they_hold(dtype: torch.dtype) -> None:
    logits, labels = normal(7, 20, 5).to(dtype), classes(8, 5, 20)
    for name, want in judged(logits.double().numpy(), labels.numpy()).items():
        close(computed(name, (logits, labels)), want)


def test_nan_among_judged_logits_is_no_number() -> None:
    logits = torch.tensor([[1.0, math.nan], [0.0, 1.0]])
    assert math.isnan(computed("ece", (logits, torch.tensor([0, 1]))))
    assert math.isnan(computed("el2n", (logits, torch.tensor([0, 1]))))


@pytest.mark.parametrize(
    ("output", "targets", "says"),
    [
        (torch.zeros(4, 3), torch.zeros(5, dtype=torch.long), r"shape \(5,\) for an output of"),
        (torch.zeros(4, 3), torch.zeros(4), "targets are torch.float32; class indices"),
    ],
)
def test_what_does_not_belong_together_is_refused(
    output: Tensor, targets: Tensor, says: str
) -> None:
    with pytest.raises(QuantityError, match=says):
        [*labelled(output, targets)]


def test_an_evaluation_counts_as_a_whole(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    batches = [(normal(i, n, 4), classes(i, 3, n)) for i, n in enumerate((9, 5, 2))]
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", [*ALONE, *JUDGED], phase="eval")
        run.attach("2", ["accuracy", "confidence"], phase="eval")
        model.eval()
        with torch.no_grad():
            for x, y in batches:
                run.batch(targets=y)
                model(x)
        assert not run.status().errors
    with torch.no_grad():
        logits: Any = model(torch.cat([x for x, _ in batches])).double().numpy()
    want = {**alone(logits), **judged(logits, torch.cat([y for _, y in batches]).numpy())}
    for name, value in want.items():
        close(float(run.series("", f"eval_{name}").values[0]), value)
    close(float(run.series("2", "eval_accuracy").values[0]), want["accuracy"])
