"""Gradient norm, step size and global step, against float64 and against what a run records."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import LBFGS, SGD, AdamW

from notebook_probe import DataCollector, OptimizerSeries
from tests.models import floats, made, mlp
from tests.run.conftest import Watch
from tests.train.collector.loops import given, sgd, train

GRADS, SIZE = "optimizer_grads_l2_collector", "trainer_log_step_size_l2_collector"
NORM, LOG, STEP = "optimizer_grads_l2norm", "trainer_log_step_size_l2norm", "optimizer_global_step"

batch = floats(5, 4)


def flat(tensors: Any) -> Any:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).double().numpy()


def test_each_collector_gets_its_own_series_and_the_global_step() -> None:
    model = made(mlp)
    grads, sizes = DataCollector().collect_all(), DataCollector().keep_n_points(4)
    for collector in (grads, sizes):
        collector.attach_to_executor(model)
    series = OptimizerSeries(model, {GRADS: grads, SIZE: sizes})
    optimizer = AdamW(model.parameters(), lr=0.01)
    norms, lengths = [], []
    for step in range(5):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        norms.append(np.linalg.norm(flat(w.grad for w in model.parameters())))
        before = flat(model.parameters())
        optimizer.step()
        lengths.append(math.log(np.linalg.norm(flat(model.parameters()) - before)))
    series.remove()
    train_once_more = model(batch(9)).sum()
    train_once_more.backward()
    optimizer.step()
    assert grads.get_all_series_names() == [NORM, STEP]
    assert sizes.get_all_series_names() == [LOG, STEP]
    np.testing.assert_allclose(grads.get_series_values(NORM), norms, rtol=1e-6)
    np.testing.assert_allclose(sizes.get_series_values(LOG), lengths[::2], rtol=1e-5)
    assert grads.get_series(STEP) == ([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert sizes.get_series(STEP) == ([0, 2, 4], [1, 3, 5])


def test_they_are_the_quantities_that_a_run_records_at_the_root(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"": ["optimizer_grads_l2norm", "trainer_log_step_size_l2norm"]})
    collector = DataCollector().collect_all()
    collector.attach_to_executor(model)
    series = OptimizerSeries(model, {GRADS: collector, SIZE: collector})
    optimizer = AdamW(model.parameters(), lr=0.01)
    for step in range(4):
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    run.close()
    series.remove()
    assert collector.get_series_values(STEP) == [1, 2, 3, 4]
    for own, recorded in ((NORM, "grad_norm"), (LOG, "log_step_size")):
        want = run.series("", recorded).values
        np.testing.assert_allclose(collector.get_series_values(own), want, rtol=1e-6)
        np.testing.assert_allclose(run.data[own].values.ravel(), want, rtol=1e-6)


def test_without_any_gradient_the_norm_is_missing_and_a_step_of_nothing_is_minus_infinity() -> None:
    model = nn.Linear(2, 1)
    collector = DataCollector().collect_all()
    collector.attach_to_executor(model)
    series = OptimizerSeries(model, {GRADS: collector, SIZE: collector})
    optimizer = sgd(model)
    model(given(1.0))
    optimizer.step()
    (norm,) = collector.get_series_values(NORM)
    assert math.isnan(norm)
    assert collector.get_series_values(LOG) == [-math.inf]
    assert collector.missing == {"no gradient": 1}
    frozen = SGD(model.requires_grad_(False).parameters(), lr=0.1)
    model(given(1.0))
    frozen.step()
    assert math.isnan(collector.get_series_values(LOG)[-1])
    assert collector.missing == {"no gradient": 2, "no parameter": 1}
    series.remove()


def test_a_parameter_without_a_gradient_is_left_out_of_the_norm() -> None:
    model = nn.Linear(2, 1)
    collector = DataCollector().collect_all()
    collector.attach_to_executor(model)
    series = OptimizerSeries(model, {GRADS: collector})
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    sgd(model).step()
    assert collector.get_series_values(NORM) == [5.0]
    series.remove()


def test_of_a_closure_the_last_gradients_count() -> None:
    model = nn.Linear(2, 1)
    collector = DataCollector().collect_all()
    collector.attach_to_executor(model)
    series = OptimizerSeries(model, {GRADS: collector})
    optimizer = LBFGS(model.parameters(), max_iter=3)
    seen = []

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(given(2.0)).square().sum()
        loss.backward()
        seen.append(np.linalg.norm(flat(w.grad for w in model.parameters())))
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(collector.get_series_values(NORM), seen[-1:], rtol=1e-6, atol=1e-12)
    series.remove()


def test_another_models_optimizer_is_no_matter_and_nothing_is_done_for_nobody() -> None:
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    collector = DataCollector().collect_all()
    context: dict[str, Any] = {GRADS: collector, "lr": 0.1}
    series = OptimizerSeries(model, context)
    train(model, sgd(model), [1.0])  # not attached
    collector.attach_to_executor(model)
    train(other, sgd(other), [1.0])
    assert collector.get_all_series_names() == []
    context[SIZE] = collector  # from now on
    train(model, sgd(model), [1.0])
    assert collector.get_all_series_names() == [NORM, LOG, STEP]
    series.remove()


def test_what_stands_under_a_key_is_a_collector() -> None:
    with pytest.raises(TypeError, match=r"context\['optimizer_grads_l2_collector'\]: int; a DataC"):
        OptimizerSeries(nn.Linear(2, 1), {GRADS: 3})
