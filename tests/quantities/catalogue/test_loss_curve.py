"""The course of the loss and where a step's time goes, against numpy and a clock of the test's."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import notebook_probe as nbp
from notebook_probe.probes.step import step_values
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.catalogue.step_time import BatchRows, rows
from notebook_probe.run.loop import batches
from notebook_probe.run.run import Run

LOSSES = np.random.default_rng(0).normal(2.0, 0.1, 150).astype(np.float32)


def trained(path: Path, losses: list[float], quantity: str, due: str = "every(1)") -> Run:
    """A run in which these losses were logged."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with nbp.watch(model, store=path / "run.zarr", probes={"": [[quantity, due]]}) as run:
        for loss in losses:
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
            if loss is not None:
                run.log(loss=loss)
        assert not run.status().errors
    return run


def test_the_average_is_the_mean_of_100_losses_and_exponential_after(tmp_path: Path) -> None:
    found = trained(tmp_path, LOSSES.tolist(), "loss_ema").series("", "loss_ema").values
    want = LOSSES[:100].astype(np.float64).cumsum() / np.arange(1, 101)
    np.testing.assert_allclose(found[:100], want, rtol=1e-6)
    weights = np.concatenate([np.full(100, 0.99**50 / 100), 0.01 * 0.99 ** np.arange(49, -1, -1)])
    assert weights.sum() == pytest.approx(1.0)
    assert found[-1] == pytest.approx(weights @ LOSSES.astype(np.float64), rel=1e-6)


def test_an_average_goes_on_over_due_steps_and_losses_that_are_none(tmp_path: Path) -> None:
    run = trained(tmp_path, [1.0, math.nan, 3.0, math.inf, 5.0], "loss_ema", "every(2)")
    assert run.series("", "loss_ema").values.tolist() == [1.0, 2.0, 3.0]


def test_a_spike_is_scored_by_median_and_deviation_of_the_64_losses_before(tmp_path: Path) -> None:
    losses = LOSSES.copy()
    losses[120] = 4.0
    found = trained(tmp_path, losses.tolist(), "loss_spike_score").series("", "loss_spike_score")
    for step in (8, 30, 119, 120, 149):
        past = losses[max(0, step - 64) : step].astype(np.float64)
        middle = np.median(past)
        score = (losses[step] - middle) / (1.4826 * np.median(np.abs(past - middle)))
        assert float(found.sel(step=step)) == pytest.approx(score, rel=1e-5)
    assert found.step.values[0] == 8
    assert found.idxmax().item() == 120
    assert float(found.max()) > 6


def test_no_spike_is_missed_between_two_due_steps(tmp_path: Path) -> None:
    losses = LOSSES[:40].tolist()
    losses[31], losses[37] = 3.0, math.nan
    found = trained(tmp_path, losses, "loss_spike_score", "every(6)").series("", "loss_spike_score")
    assert float(found.sel(step=36)) > 6
    assert float(found.sel(step=30)) < 6
    assert 42 not in found.step
    run = trained(tmp_path / "nan", losses, "loss_spike_score", "every(38, 37)")
    assert math.isnan(run.series("", "loss_spike_score").values[-1])


def test_a_past_that_never_changed_says_nothing(tmp_path: Path) -> None:
    run = trained(tmp_path, [2.0] * 20 + [3.0], "loss_spike_score")
    assert run.series("", "loss_spike_score").sizes["step"] == 0


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 10), st.floats(-100, 100), st.integers(0, 1000))
def test_a_score_knows_neither_scale_nor_zero(scale: float, shift: float, seed: int) -> None:
    losses = np.random.default_rng(seed).normal(size=40)
    one, other = as_quantity("loss_spike_score")(), as_quantity("loss_spike_score")()
    for window, values in ((one, losses), (other, scale * losses + shift)):
        window.reset()
        for value in values:
            window.update(float(value))
    assert one.compute() == pytest.approx(other.compute(), rel=1e-6)


@pytest.mark.parametrize("name", ["eval_loss", "val_loss", "test_loss"])
def test_the_gap_is_to_the_mean_of_the_training_since_the_last_evaluation(
    tmp_path: Path, name: str
) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": ["train_eval_gap"]}) as run:
        for step in range(9):
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
            run.log(loss=float(step))
            if step % 4 == 3:
                evaluated: dict[str, Any] = {name: 10.0}
                run.log(**evaluated)
        assert not run.status().silent
    found = run.series("", "train_eval_gap")
    assert found.step.values.tolist() == [3, 7]
    assert found.values.tolist() == [10.0 - 1.5, 10.0 - 5.5]


class Clock:
    """A clock that only goes on when told to."""

    now = 100.0

    def perf_counter(self) -> float:
        return self.now

    time_ns = staticmethod(time.time_ns)


def test_time_waited_and_samples_are_those_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    for module in (step_values, batches):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr("notebook_probe.probes.step.frame.time", clock)
    waits, works = [0.5, 1.0, 0.25, 2.0, 0.75], [1.0, 3.0, 2.0, 4.0, 5.0]

    def loader() -> object:
        for wait in waits:
            clock.now += wait
            yield torch.ones(3, 2)

    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    names = ["step_time", "data_wait_share", "samples_per_second"]
    probes = {"": [[name, "every(2)"] for name in names]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes) as run:
        for batch, work in zip(run.batches(loader()), works, strict=False):  # type: ignore[var-annotated, arg-type]
            model(batch).sum().backward()
            clock.now += work
            optimizer.step()
        assert not run.status().errors
    # A step's time ends where the next one begins: after the wait for the next batch.
    steps = [1.0 + 1.0, 3.0 + 0.25, 2.0 + 2.0, 4.0 + 0.75, 5.0]
    waited = [1.0, 0.25, 2.0, 0.75, 0.0]
    windows = [[0], [1, 2], [3, 4]]
    found = {name: run.series("", name).values for name in names}
    seconds = [sum(steps[i] for i in window) for window in windows]
    np.testing.assert_allclose(
        found["step_time"], [np.median([steps[i] for i in w]) for w in windows], atol=0.02
    )
    share = [sum(waited[i] for i in w) / s for w, s in zip(windows, seconds, strict=True)]
    np.testing.assert_allclose(found["data_wait_share"], share, atol=0.01)
    rate = [3 * len(w) / s for w, s in zip(windows, seconds, strict=True)]
    np.testing.assert_allclose(found["samples_per_second"], rate, rtol=0.01)


def test_without_batches_of_the_run_the_wait_is_missing_and_the_status_says_so(
    tmp_path: Path,
) -> None:
    model = nn.Linear(2, 1)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": ["data_wait_share"]}) as run:
        model(torch.ones(3, 2)).sum().backward()
        run.step()
        [probe] = run.status().probes
    assert run.series("", "data_wait_share").sizes["step"] == 0
    assert "run.batches(loader)" in probe.note


def test_peak_memory_is_no_less_than_what_is_held_now(tmp_path: Path) -> None:
    held = torch.ones(4 << 20)
    found = trained(tmp_path, [1.0, 2.0], "peak_memory").series("", "peak_memory").values
    assert found[0] <= found[1]
    assert found[0] > held.nbytes


def test_what_is_in_use_now_is_read_of_the_process_where_there_is_no_device(
    tmp_path: Path,
) -> None:
    held = torch.ones(4 << 20)
    model = nn.Linear(2, 1)
    names = ["device_memory", "device_utilization"]
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": names}) as run:
        for _ in range(2):
            begun = time.process_time()
            while time.process_time() - begun < 0.01:  # one core is busy
                model(torch.ones(3, 2)).sum().backward()
            run.step()
    used, busy = (run.series("", name).values for name in names)
    assert held.nbytes < used[-1] < 1e12
    assert 0 < busy[-1] <= 1


def test_a_device_tells_what_its_driver_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (3 << 30, 8 << 30))
    monkeypatch.setattr(torch.cuda, "utilization", lambda: 71)
    monkeypatch.setattr(torch.cuda, "power_draw", lambda: 312_500)  # milliwatts
    frame = StepFrame(0)
    assert step_values.AT_END["used_bytes"](frame) == 5 << 30
    assert step_values.AT_END["busy_share"](frame) == 0.71
    assert step_values.AT_END["device_watts"](frame) == 312.5


def test_the_power_of_a_host_is_missing_and_the_status_says_why(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": ["device_power"]}) as run:
        model(torch.ones(3, 2)).sum().backward()
        run.step()
        [probe] = run.status().probes
    assert run.series("", "device_power").sizes["step"] == 0
    assert "CUDA device" in probe.note


def test_what_a_driver_will_not_tell_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(frame: StepFrame) -> float:
        raise RuntimeError("no such device")

    monkeypatch.setitem(step_values.AT_END, "peak_bytes", broken)
    run = trained(tmp_path, [1.0, 2.0], "peak_memory")
    assert run.series("", "peak_memory").sizes["step"] == 0


def test_samples_are_counted_along_the_first_axis() -> None:
    assert rows(torch.zeros(())) == BatchRows(1)
    assert rows(torch.zeros(0, 3)).merge(rows(torch.zeros(5))) == BatchRows(5)
