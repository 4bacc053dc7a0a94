"""What is in a batch and which samples are hard, against numpy and scikit-learn."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.errors import QuantityError
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue import batch_content
from notebook_probe.quantities.catalogue.batch_content import hashes
from notebook_probe.quantities.catalogue.class_separation import RIDGE
from notebook_probe.quantities.catalogue.quantiles import sample
from notebook_probe.quantities.catalogue.sample_losses import losses_of
from tests.models import normal
from tests.quantities.evaluated import computed

Array = npt.NDArray[np.float64]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=30), st.integers(0, 30))
def test_the_entropy_of_labels_is_that_of_their_shares(labels: list[int], cut: int) -> None:
    counted = Counter(label for label in labels if label >= 0)
    shares = [n / counted.total() for n in counted.values()]
    want = -sum(p * math.log(p) for p in shares) if shares else math.nan
    parts = [torch.tensor(part, dtype=torch.long) for part in (labels[:cut], labels[cut:])]
    found = computed("label_entropy", *((part,) for part in parts))
    np.testing.assert_allclose(found, want, atol=1e-12)


def test_targets_that_are_no_classes_have_no_entropy() -> None:
    with pytest.raises(QuantityError, match="class indices are expected"):
        computed("label_entropy", (torch.zeros(3),))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.sampled_from(list("fbdic")))
def test_copies_are_counted_bit_for_bit(kinds: list[int], dtype: str) -> None:
    dtypes = {
        "f": torch.float32,
        "b": torch.bfloat16,
        "d": torch.float64,
        "i": torch.int64,
        "c": torch.complex64,
    }
    originals = (normal(1, 6, 2, 3, 8) * 100).to(dtypes[dtype])
    found = computed("duplicate_fraction", (originals[kinds[:7]],), (originals[kinds[7:]],))
    assert float(found) == pytest.approx(1 - len(set(kinds)) / len(kinds))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=9), min_size=1, max_size=12))
def test_samples_of_earlier_batches_are_told_from_new_ones(batches: list[list[int]]) -> None:
    originals = normal(7, 41, 2, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_content, "UNSORTED", 10)
        window = as_quantity("batch_seen_before")()
        known: set[int] = set()
        for batch in batches:
            window.reset()
            window.update(originals[batch])
            want = sum(one in known for one in batch) / len(batch)
            assert float(window.compute()) == pytest.approx(want)
            known |= {*batch}


def test_no_more_samples_are_remembered_than_there_is_room_for() -> None:
    window = as_quantity("batch_seen_before")()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_content, "MOST", 8)
        seen = []
        for start in (0, 5, 10, 10, 0):
            window.reset()
            window.update(torch.arange(start, start + 5.0)[:, None])
            seen.append(float(window.compute()))
    assert seen == [0.0, 0.0, 0.0, 0.0, 1.0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([-100, -1, 0, 7]), min_size=1, max_size=30), st.integers(0, 30))
def test_targets_that_count_are_those_that_are_not_negative(labels: list[int], cut: int) -> None:
    parts = [torch.tensor(part, dtype=torch.long) for part in (labels[:cut], labels[cut:])]
    found = computed("label_share", *((part,) for part in parts))
    assert float(found) == pytest.approx(sum(one >= 0 for one in labels) / len(labels))
    with pytest.raises(QuantityError, match="class indices are expected"):
        computed("label_share", (torch.zeros(3),))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(0, 30), st.booleans())
def test_shares_of_flags_are_over_all_micro_batches(
    flags: list[bool], cut: int, is_of_integers: bool
) -> None:
    dtype = torch.int64 if is_of_integers else torch.bool
    parts = [(torch.tensor(part, dtype=dtype),) for part in (flags[:cut], flags[cut:])]
    share = sum(flags) / len(flags)
    assert float(computed("truncated_share", *parts)) == pytest.approx(share)
    assert float(computed("padding_share", *parts)) == pytest.approx(1 - share)


@pytest.mark.parametrize("name", ["padding_share", "truncated_share"])
def test_a_mask_that_is_added_to_scores_is_refused(name: str) -> None:
    with pytest.raises(QuantityError, match="integers 0 and 1, or bools, are expected"):
        computed(name, (torch.tensor([0.0, -torch.inf]),))


def test_hashes_tell_what_differs_in_one_bit_or_in_order() -> None:
    x = normal(2, 1, 1000)
    other, turned = x.clone(), x.flip(1)
    other[0, 500] = torch.nextafter(other[0, 500], torch.tensor(9.0))
    rows = torch.cat([x, other, turned, x, 0 * x, -0.0 * x.abs()])
    assert len(set(hashes(rows).tolist())) == 5
    assert hashes(torch.zeros(0, 3)).shape == (0,)


def test_losses_spread_as_their_quantiles_do() -> None:
    losses = normal(3, 12).exp()
    spread = as_quantity("sample_loss_quantiles")(sample(losses[:5]).merge(sample(losses[5:])))
    levels = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
    np.testing.assert_allclose(spread, np.quantile(losses.double().numpy(), levels), rtol=1e-6)


def test_the_worst_samples_are_named_with_their_losses() -> None:
    losses, indices = normal(4, 20).exp(), torch.randperm(1000)[:20]
    order = np.argsort(-losses.numpy())[:8]
    calls = [(losses[:6], indices[:6]), (losses[6:], indices[6:])]
    np.testing.assert_array_equal(computed("worst_samples", *calls), indices.numpy()[order])
    np.testing.assert_allclose(computed("worst_sample_losses", *calls), losses.numpy()[order])


def test_few_samples_leave_places_empty_and_a_broken_loss_is_the_worst() -> None:
    call = torch.tensor([1.0, math.nan, 3.0]), torch.tensor([10, 11, 12])
    np.testing.assert_array_equal(computed("worst_samples", call), [11, 12, 10] + [math.nan] * 5)
    with pytest.raises(QuantityError, match="2 indices for 3 losses"):
        computed("worst_samples", (call[0], call[1][:2]))
    assert losses_of(torch.tensor(2.0)).tolist() == [2.0]
    assert losses_of(torch.tensor([[1.0, 2.0], [4.0, 4.0]])).tolist() == [1.5, 4.0]


def test_what_was_right_and_is_wrong_again_is_forgotten() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 40)
    window = as_quantity("forgetting_events")()
    window.reset()
    last: dict[int, bool] = {}
    for _ in range(12):
        indices = random.permutation(40)[:15]
        logits = random.normal(size=(15, 3))
        right = logits.argmax(1) == labels[indices]
        want = sum(last.get(i, False) and not r for i, r in zip(indices, right, strict=True))
        last.update(zip(indices.tolist(), right.tolist(), strict=True))
        window.update(*map(torch.from_numpy, (logits, labels[indices], indices)))
        assert int(window.compute()) == want
        window.reset()
    with pytest.raises(QuantityError, match="index -1; numbers from 0"):
        window.update(torch.zeros(1, 3), torch.tensor([0]), torch.tensor([-1]))


CLASSES = torch.arange(60) % 4
CLUSTERS = 4 * normal(5, 4, 6)[CLASSES] + normal(6, 60, 6)


def collapse(rows: Any, labels: Any) -> float:
    """As the source writes it, with the pseudo-inverse."""
    names = np.unique(labels)
    means = np.stack([rows[labels == name].mean(0) for name in names])
    within = rows - means[np.searchsorted(names, labels)]
    between = means - rows.mean(0)
    inner, outer = within.T @ within / len(rows), between.T @ between / len(names)
    return float(np.trace(inner @ np.linalg.pinv(outer, rcond=1e-10)) / len(names))


def test_neural_collapse_is_that_of_the_source() -> None:
    nc1 = as_quantity("neural_collapse_nc1")
    found = float(nc1(CLUSTERS, CLASSES, nn.Linear(1, 6)))
    assert found == pytest.approx(collapse(CLUSTERS.double().numpy(), CLASSES.numpy()), rel=1e-6)
    tight = float(nc1(0.1 * CLUSTERS + 40 * normal(5, 4, 6)[CLASSES], CLASSES, nn.Linear(1, 6)))
    assert tight < found / 100
    images = CLUSTERS[:, :, None, None] + torch.tensor([[-1.0, 1.0]])
    assert float(nc1(images, CLASSES, nn.Conv2d(1, 6, 1))) == pytest.approx(found, rel=1e-4)
    tokens = CLUSTERS.reshape(12, 5, 6), CLASSES.reshape(12, 5)
    assert float(nc1(*tokens, nn.Linear(1, 6))) == pytest.approx(found, rel=1e-9)
    for same in (torch.ones(60, 6), CLUSTERS * math.nan, CLUSTERS[:0]):
        assert math.isnan(nc1(same, CLASSES[: len(same)], nn.Linear(1, 6)))
    assert math.isnan(nc1(CLUSTERS, torch.zeros(60, dtype=torch.long), nn.Linear(1, 6)))


def ridge(x: Array, y: Array, penalty: float, others: Array) -> Array:
    """Return predictions of ridge regression, by least squares with a row for each weight."""
    rows = np.vstack([x - x.mean(0), math.sqrt(penalty) * np.eye(x.shape[1])])
    targets = np.vstack([y - y.mean(0), np.zeros((x.shape[1], y.shape[1]))])
    weights = np.linalg.lstsq(rows, targets)[0]
    return np.asarray((others - x.mean(0)) @ weights + y.mean(0))


def test_a_linear_probe_is_ridge_regression_on_every_second_sample() -> None:
    order = torch.randperm(60, generator=torch.Generator().manual_seed(7))
    rows, labels = CLUSTERS[order] + 3 * normal(8, 60, 6), CLASSES[order]
    probe = as_quantity("linear_probe_accuracy")
    x, y = rows.double().numpy(), np.eye(4)[labels.numpy()]
    penalty = RIDGE * (np.square(x[::2] - x[::2].mean(0)).sum() / 30)
    guesses = ridge(x[::2], y[::2], penalty, x[1::2]).argmax(1)
    want = (guesses == labels.numpy()[1::2]).mean()
    assert 0.4 < want < 1
    assert float(probe(rows, labels, nn.Linear(1, 6))) == pytest.approx(want)
    assert math.isnan(probe(rows[:3], labels[:3], nn.Linear(1, 6)))
    with pytest.raises(QuantityError, match="one class index per sample"):
        probe(rows, labels[:5], nn.Linear(1, 6))


@pytest.mark.slow
def test_a_loop_sees_all_of_it_in_its_record(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    probes = {
        "": ["sample_loss_quantiles", "worst_samples", "worst_sample_losses", "forgetting_events"],
        nn.Linear: ["neural_collapse_nc1", "linear_probe_accuracy"],
    }
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes) as run:
        run.attach("", ["label_entropy", "duplicate_fraction", "batch_input_mean"], "every(3)")
        for _ in range(6):
            run.batch(targets=CLASSES, indices=range(100, 160))
            losses = F.cross_entropy(model(CLUSTERS), CLASSES, reduction="none")
            run.batch(losses=losses)
            losses.mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert not run.status().errors
        assert not run.status().silent
    worst = run.series("", "worst_samples").sel(step=5).values
    assert worst[0] == 100 + int(losses.argmax())
    assert run.series("", "worst_sample_losses").sel(step=5).values[0] == pytest.approx(
        losses.max().item()
    )
    assert run.series("", "label_entropy").values.tolist() == pytest.approx([math.log(4)] * 2)
    assert run.series("", "duplicate_fraction").values.tolist() == [0.0, 0.0]
    assert run.series("", "input_mean").values[0] == pytest.approx(float(CLUSTERS.mean()), abs=1e-6)
    assert run.series("0", "neural_collapse_nc1").sizes["step"] == 6
