"""Mean losses and numbers of samples by bucket, against numpy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.catalogue.loss_by_bucket import N_BUCKETS
from tests.models import normal
from tests.quantities.evaluated import computed

LAST = N_BUCKETS - 1


def expected(losses: list[float], buckets: list[int]) -> tuple[list[float], list[float]]:
    means, counts = [], []
    for bucket in range(N_BUCKETS):
        here = [
            loss
            for loss, own in zip(losses, buckets, strict=True)
            if own == bucket or (bucket == LAST and own > LAST)
        ]
        means.append(float(np.mean(here)) if here else math.nan)
        counts.append(float(len(here)) if here else math.nan)
    return means, counts


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-2, 2 * N_BUCKETS), max_size=40), st.integers(0, 40))
def test_each_bucket_has_the_mean_of_its_losses(buckets: list[int], cut: int) -> None:
    losses = normal(2, len(buckets)).exp()
    means, counts = expected(losses.double().tolist(), buckets)
    of = torch.tensor(buckets, dtype=torch.long)
    found = computed("loss_by_bucket", (losses[:cut], of[:cut]), (losses[cut:], of[cut:]))
    np.testing.assert_allclose(found, means, rtol=1e-12)
    np.testing.assert_array_equal(computed("samples_by_bucket", (of[:cut],), (of[cut:],)), counts)


def test_a_nan_loss_spoils_its_own_bucket_only() -> None:
    losses, buckets = torch.tensor([1.0, math.nan, 3.0, math.nan]), torch.tensor([0, 1, 2, -1])
    found = computed("loss_by_bucket", (losses, buckets))
    np.testing.assert_array_equal(found[:4], [1.0, math.nan, 3.0, math.nan])
    np.testing.assert_array_equal(
        computed("samples_by_bucket", (buckets,))[:4], [1, 1, 1, math.nan]
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["half", "bfloat16"])
def test_losses_in_half_precision_are_added_in_double(dtype: torch.dtype) -> None:
    losses = torch.full((5000,), 7.0, dtype=dtype)
    found = computed("loss_by_bucket", (losses, torch.zeros(5000, dtype=torch.uint8)))
    assert found[0] == 7.0


def test_buckets_may_be_of_samples_or_of_tokens() -> None:
    losses = torch.tensor([[1.0, 3.0], [5.0, 9.0]])
    of_samples = computed("loss_by_bucket", (losses, torch.tensor([1, 0])))
    of_tokens = computed("loss_by_bucket", (losses, torch.tensor([[0, 1], [0, 1]])))
    assert of_samples[:2].tolist() == [7.0, 2.0]
    assert of_tokens[:2].tolist() == [3.0, 6.0]


def test_buckets_that_are_no_whole_numbers_or_too_few_are_refused() -> None:
    with pytest.raises(QuantityError, match=r"buckets are torch.float32; whole numbers from 0"):
        computed("loss_by_bucket", (torch.ones(2), torch.tensor([0.1, 0.2])))
    with pytest.raises(QuantityError, match="2 buckets for 3 losses"):
        computed("loss_by_bucket", (torch.ones(3), torch.tensor([0, 1])))


def test_a_loop_records_its_losses_by_bucket(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probes = {"": [["loss_by_bucket", "every(2)"], ["samples_by_bucket", "every(2)"]]}
    run = nbp.watch(model, optimizer, store=tmp_path / "run.zarr", probes=probes)
    kept: list[Tensor] = []
    targets = torch.tensor([0, 1, 2, 2, 0, 0])
    for step in range(3):
        losses = F.cross_entropy(model(normal(step, 6, 4)), targets, reduction="none")
        run.batch(losses=losses, buckets=targets)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        kept.append(losses.detach().double())
    run.close()
    series = run.series("", "loss_by_bucket")
    assert series.dims == ("step", "bucket")
    assert series.step.values.tolist() == [0, 2]
    since = torch.cat(kept[1:])
    for bucket in range(3):
        mean = since[targets.repeat(2) == bucket].mean()
        assert float(series.sel(step=2, bucket=bucket)) == pytest.approx(float(mean), rel=1e-6)
    assert series.sel(step=2)[3:].isnull().all()
    counts = run.series("", "samples_by_bucket").sel(step=2).values
    assert counts[:3].tolist() == [6, 2, 4]
