"""A training on an accelerator is what it would be unwatched: in weights, memory, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from tests.gpu.conftest import OnAccelerator
from tests.gpu.devices import Device, needs_cuda
from tests.gpu.kinds import KINDS, loss_of_output
from tests.models import made
from tests.probes.reading.on_accelerator import never_by_itself
from tests.run.accelerator import host

pytestmark = pytest.mark.xdist_group("accelerator")  # one process serves them all

STEPS = 6
MOST_MORE = 0.02
"""Memory at the peak, over that of the same training unwatched."""
KEPT = 1 << 20
"""Bytes that a run may keep from step to step, of what is copied to the host now and then."""


# ---------------------------------------------------------------- bit for bit


def ends(device: Device, folder: Path, kind: str, watched: bool) -> list[Any]:
    never_by_itself()
    torch.use_deterministic_algorithms(True)
    try:
        made_kind = KINDS[kind]
        model = device.moved(made_kind.made())
        probes = ["default", "alerts", "gradients", "activations", "precision"]
        run = nbp.watch(model, store=folder / "r.zarr", probes=probes) if watched else None
        optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=False)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of_output(model(device.put(made_kind.batch(step)))).backward()
            optimizer.step()
        if run is not None:
            run.close()
            assert [probe.error for probe in run.status().errors] == []
    finally:
        torch.use_deterministic_algorithms(False)
    return [(host(value) if not device.is_cuda else value).tolist() for value in parameters(model)]


def parameters(model: nn.Module) -> list[Tensor]:
    return [value.detach() for value in (*model.parameters(), *model.buffers())]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_equal_bit_for_bit_with_and_without_watching(
    kind: str, on_accelerator: OnAccelerator, tmp_path: Path
) -> None:
    plain = on_accelerator(ends, tmp_path, kind, False)
    assert on_accelerator(ends, tmp_path, kind, True) == plain


# ---------------------------------------------------------------- memory


def wide() -> nn.Sequential:
    """Its activations are what takes memory, as in most trainings."""
    blocks = [nn.Sequential(nn.Linear(512, 512), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*blocks, nn.Linear(512, 512))


def memory(folder: Path, watched: bool) -> dict[str, int]:
    torch.cuda.empty_cache()
    model = made(wide).cuda()
    run = nbp.watch(model, store=folder / "m.zarr", budget=None) if watched else None
    optimizer = SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(1 << 16, 512, device="cuda")
    kept = []
    for step in range(12):
        if step == 2:
            torch.cuda.reset_peak_memory_stats()
        optimizer.zero_grad()
        loss_of_output(model(batch)).backward()
        optimizer.step()
        if run is not None:
            run.flush()
        kept.append(torch.cuda.memory_allocated())
    found = {"peak": torch.cuda.max_memory_allocated(), "grown": kept[-1] - kept[3]}
    if run is not None:
        run.close()
    return found


@needs_cuda
def test_memory_at_the_peak_is_that_of_an_unwatched_training(tmp_path: Path) -> None:
    plain, watched = memory(tmp_path, False), memory(tmp_path, True)
    assert watched["peak"] <= (1 + MOST_MORE) * plain["peak"], (watched, plain)
    assert watched["grown"] <= KEPT


def test_a_tensor_read_in_slabs_takes_little_memory_and_is_the_same(
    on_accelerator: OnAccelerator,
) -> None:
    found, want = on_accelerator(stat_in_slabs), on_accelerator(stat_at_once)
    assert found == pytest.approx(want, rel=1e-9)


def stat_in_slabs(device: Device) -> list[float]:
    """A tensor larger than a slab where a slab is small."""
    from notebook_probe.quantities.reduce import device_stat

    small = {"SLAB": 256, "ROW": 64, "SMALL": 32}
    before = {name: getattr(device_stat, name) for name in small}
    try:
        for name, value in small.items():
            setattr(device_stat, name, value)
        return stat_at_once(device)
    finally:
        for name, value in before.items():
            setattr(device_stat, name, value)


def stat_at_once(device: Device) -> list[float]:
    from notebook_probe.quantities.reduce.device_stat import DeviceStat, device_stat

    generator = torch.Generator().manual_seed(3)
    values = 1000 + 0.01 * torch.randn(7, 101, generator=generator)
    values[0, :5] = 0.0
    values[3, 3] = -2000.0
    parts = frozenset({"sumsq", "moments", "zeros", "nonfinite", "largest"})
    found = device_stat(device.put(values), parts)
    assert isinstance(found, DeviceStat)
    stat = found.mapped(lambda sums: host(sums) if not device.is_cuda else sums.cpu())
    return [stat.sumsq, stat.mean, stat.spread, stat.n_zero, stat.n_nonfinite, stat.largest]  # type: ignore[union-attr, list-item]


# ---------------------------------------------------------------- errors of the user's step


class Hungry(nn.Module):
    """Asks for more memory than there is, when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.is_hungry = nn.Linear(4, 2), False

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.linear(x)
        if self.is_hungry:
            if x.is_cuda:
                torch.empty(1 << 44, device=x.device)
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return hidden


def trained_out_of_memory(device: Device, folder: Path) -> dict[str, Any]:
    never_by_itself()
    model = made(Hungry)
    device.moved(model)
    run = nbp.watch(model, store=folder / "r.zarr", budget=None)
    optimizer = SGD(model.parameters(), lr=0.1)
    n_raised = 0
    for step in range(STEPS):
        model.is_hungry = step == 2
        optimizer.zero_grad()
        try:
            loss_of_output(model(device.put(KINDS["mlp"].batch(step)))).backward()
        except torch.cuda.OutOfMemoryError:
            n_raised += 1
            continue
        optimizer.step()
    run.close()
    data = run.data.load()
    return {
        "raised": n_raised,
        "steps": data.step.values.tolist(),
        "measured": int(data.output_norm.sel(module="linear").notnull().sum()),
        "errors": [probe.error for probe in run.status().errors],
    }


def test_a_run_stays_usable_when_the_users_step_is_out_of_memory(
    on_accelerator: OnAccelerator, tmp_path: Path
) -> None:
    told = on_accelerator(trained_out_of_memory, tmp_path)
    assert told["raised"] == 1
    assert told["steps"] == list(range(STEPS - 1))
    assert told["measured"] == STEPS - 1
    assert told["errors"] == []


# ---------------------------------------------------------------- the user's own CUDA graphs


def captured(folder: Path, watched: bool) -> tuple[list[Any], list[int], str]:
    """Weights after a step that was captured once and replayed; the steps that were recorded."""
    model = made(KINDS["mlp"].build).cuda()
    run = nbp.watch(model, store=folder / "g.zarr", budget=None) if watched else None
    optimizer = SGD(model.parameters(), lr=0.05)
    given = KINDS["mlp"].batch(0).cuda()

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        loss_of_output(model(given)).backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for n in range(STEPS):
        given.copy_(KINDS["mlp"].batch(n))
        graph.replay()
    step()  # and one that runs as usual
    weights = [value.tolist() for value in parameters(model)]
    if run is None:
        return weights, [], ""
    run.close()
    return weights, run.data.load().step.values.tolist(), run.status().problem


@needs_cuda
def test_a_captured_step_is_neither_changed_nor_measured(tmp_path: Path) -> None:
    plain, _, _ = captured(tmp_path, watched=False)
    weights, steps, problem = captured(tmp_path, watched=True)
    assert weights == plain
    assert problem == ""
    assert len(steps) == 4, "three before the capture and one after; none of the capture"
