"""Collectors of a real trainer and loop: what they attach to needs to know nothing of them."""

from __future__ import annotations

import gc
import math
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.train import Loop, Trainer
from tests.train.collector.loops import Telling, given


def batch(value: float) -> tuple[Tensor, Tensor]:
    return given(value), torch.zeros(1, 1)


def made(*collectors: nbp.DataCollector, **options: Any) -> Loop:
    model = Telling(*collectors)
    optimizer = SGD(model.parameters(), lr=0.001)
    return Loop(Trainer(model, nn.functional.mse_loss, optimizer, **options))


def test_training_and_evaluation_of_a_loop_are_collected_apart() -> None:
    training, evaluation = nbp.DataCollector().collect_all(), nbp.DataCollector().collect_all()
    loop = made(training, evaluation)
    training.attach_to_loop(loop)
    evaluation.attach_to_loop(loop, phase="eval")
    loop.every_n_steps(2, lambda loop, metrics: loop.eval([batch(100.0), batch(200.0)]))
    loop.on_step(lambda loop, metrics: training.collect(loop.loop_step, "of a hook"))
    loop.run_epochs([batch(float(step)) for step in range(5)], 1)
    assert training.get_series("input") == ([0, 1, 2, 3, 4], [0.0, 1.0, 2.0, 3.0, 4.0])
    assert training.get_series("of a hook") == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    assert evaluation.get_series("input") == ([2, 2, 4, 4], [200.0, 400.0, 200.0, 400.0])


def test_micro_batches_are_of_one_step_and_a_loop_that_was_loaded_counts_on() -> None:
    collector = nbp.DataCollector().collect_all()
    loop = made(collector, accumulate=2)
    loop.load_state_dict({**loop.state_dict(), "loop_step": 40})
    collector.attach_to_loop(loop)
    loop.run_steps([batch(float(number)) for number in range(4)], 2)
    assert collector.get_series("input") == ([40, 40, 41, 41], [0.0, 1.0, 2.0, 3.0])


def test_an_attempt_that_a_scaler_skips_is_no_step() -> None:
    collector = nbp.DataCollector().collect_all()
    loop = made(collector, scaler=torch.amp.GradScaler("cpu"))
    collector.attach_to_loop(loop)
    loop.run_steps([batch(1.0), batch(math.inf), batch(3.0)], 2)
    assert loop.skipped_steps == 1
    assert collector.get_series("input") == ([0, 1], [1.0, 3.0])


def test_in_the_background_and_recorded(tmp_path: Path) -> None:
    collector = nbp.DataCollector().keep_n_points(4)
    loop = made(collector)
    run = loop.watch(store=tmp_path / "run.zarr", probes=None)
    collector.attach_to_loop(loop)
    loop.start([batch(float(step)) for step in range(9)], steps=9).wait()
    run.close()
    assert collector.get_series("input") == ([0, 4, 8], [0.0, 4.0, 8.0])
    assert [*run.series("", "input").values] == [float(step) for step in range(9)]


def test_the_collectors_of_a_trainers_context_get_what_its_optimizer_does() -> None:
    collectors = {
        key: nbp.DataCollector().collect_all()
        for key in ("optimizer_grads_l2_collector", "trainer_log_step_size_l2_collector")
    }
    loop = made(context=collectors)
    for collector in collectors.values():
        collector.attach_to_loop(loop)
    loop.run_steps([batch(1.0), batch(2.0)], 2)
    of_norms, of_sizes = collectors.values()
    norms = of_norms.get_series_values("optimizer_grads_l2norm")
    sizes = of_sizes.get_series_values("trainer_log_step_size_l2norm")
    assert len(norms) == 2
    for norm, size in zip(norms, sizes, strict=True):  # plain SGD
        assert size == pytest.approx(math.log(0.001 * norm), abs=1e-4)
    for collector in collectors.values():
        assert collector.get_series("optimizer_global_step") == ([0, 1], [1, 2])


def test_a_loop_is_freed_with_its_model() -> None:
    collector = nbp.DataCollector().collect_all()
    loop = made(collector)
    collector.attach_to_loop(loop)
    loop.run_steps([batch(1.0)], 1)
    gone = weakref.ref(loop.trainer.model)
    del loop
    gc.collect()
    assert gone() is None
    assert collector.get_series_values("input") == [1.0]
