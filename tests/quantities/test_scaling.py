"""Loss scale, skipped updates and clipping under a gradient scaler, against a diary of the loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import SGD, Adam, AdamW, Optimizer

import notebook_probe as nbp

NAMES = ["amp_scale", "amp_skipped", "clip_coefficient"]
CLIP = 0.05
OVERFLOWS = {2, 6, 7, 11, 15}
"""Batches whose loss overflows; the scale grows after every third clean one."""

OPTIMIZERS: dict[str, Callable[[nn.Module], Optimizer]] = {
    "sgd": lambda model: SGD(model.parameters(), lr=0.01),
    "adam": lambda model: Adam(model.parameters(), lr=0.001),
    "fused adamw": lambda model: AdamW(model.parameters(), lr=0.001, fused=True),
}


@dataclass
class Diary:
    """Of every update that reached the optimizer."""

    scale: list[float] = field(default_factory=list)
    n_skipped: list[int] = field(default_factory=list)
    clipped: list[float] = field(default_factory=list)


def train(model: nn.Module, optimizer: Optimizer, n: int = 18) -> Diary:
    scaler, diary, waiting = GradScaler("cpu", init_scale=1024.0, growth_interval=3), Diary(), 0
    is_fused = bool(optimizer.defaults.get("fused"))
    generator = torch.Generator().manual_seed(0)
    for batch in range(n):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3, generator=generator)).square().mean()
        scaler.scale(loss * (math.inf if batch in OVERFLOWS else 1.0)).backward()
        scaler.unscale_(optimizer)
        raw = float(nn.utils.clip_grad_norm_(model.parameters(), CLIP))
        before = scaler.get_scale()
        scaler.step(optimizer)
        skips = batch in OVERFLOWS
        if is_fused or not skips:
            diary.scale.append(before)
            diary.n_skipped.append(int(skips) if is_fused else waiting)
            diary.clipped.append(math.nan if skips else min(1.0, CLIP / raw))
        waiting = waiting + 1 if skips else 0
        scaler.update()
    return diary


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_scale_skipped_updates_and_clipping_are_those_of_the_loop(
    kind: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = OPTIMIZERS[kind](model)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": NAMES}) as run:
        diary = train(model, optimizer)
        assert not run.status().errors
    at = run.data.sel(module="(root)").load()
    np.testing.assert_array_equal(at.amp_scale, diary.scale)
    np.testing.assert_array_equal(at.amp_skipped, diary.n_skipped)
    np.testing.assert_allclose(at.clip_coefficient, diary.clipped, rtol=1e-4)
    assert sum(diary.n_skipped) == len(OVERFLOWS)


def test_skipped_updates_are_counted_from_one_due_step_to_the_next(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = OPTIMIZERS["sgd"](model)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", "amp_skipped", "every(4, 3)")
        diary = train(model, optimizer)
    found = run.series("", "amp_skipped")
    want = [sum(diary.n_skipped[i : i + 4]) for i in range(0, len(diary.n_skipped) - 3, 4)]
    np.testing.assert_array_equal(found, want)


def test_without_a_scaler_there_is_no_scale_and_clipping_is_told_all_the_same(
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = OPTIMIZERS["adam"](model)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": NAMES}) as run:
        for clip in (1e9, 0.01):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).square().mean().backward()
            raw = float(nn.utils.clip_grad_norm_(model.parameters(), clip))
            optimizer.step()
        notes = {probe.quantity: probe.note for probe in run.probes()}
    assert notes["amp_scale"] == "no gradient scaler has called an optimizer's step yet"
    at = run.data.sel(module="(root)").load()
    assert at.amp_scale.isnull().all()
    assert at.amp_skipped.isnull().all()
    assert float(at.clip_coefficient[0]) == 1.0, "exactly: nothing was clipped"
    assert float(at.clip_coefficient[1]) == pytest.approx(0.01 / raw, rel=1e-4)


def test_a_scale_that_the_loop_sets_is_no_skipped_update(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer, scaler = OPTIMIZERS["sgd"](model), GradScaler("cpu", init_scale=1024.0)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": NAMES}) as run:
        for batch in range(4):
            scaler.scale(model(torch.ones(4, 3)).square().mean()).backward()
            scaler.step(optimizer)
            scaler.update(256.0 if batch == 1 else None)
    np.testing.assert_array_equal(run.data.amp_scale.sel(module="(root)"), [1024, 1024, 256, 256])
    np.testing.assert_array_equal(run.data.amp_skipped.sel(module="(root)"), 0)
