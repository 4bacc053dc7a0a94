"""How much an accelerator is asked to do in a due step: fewer kernels than values, one copy."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD
from torch.profiler import ProfilerActivity, profile

import notebook_probe as nbp
from notebook_probe.quantities.reduce import device_stat, measure
from tests.models import floats, made
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.run.accelerator import Accelerator, copies, kernels, moved, on_device

batch = floats(5, 8)
OF_PARAMETERS = ["weight_norm", "grad_norm", "update_ratio"]
OF_OUTPUTS = ["output_norm", "output_mean", "output_std", "zero_fraction", "nonfinite_fraction"]


class Layers(nn.Sequential):
    """As many layers of one size, with an activation behind each."""

    def __init__(self, n: int) -> None:
        super().__init__(*(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(n)))


def asked(folder: Path, n_layers: int, probes: Any) -> dict[str, Any]:
    """Kernels and copies of a due step, over those of the same step unwatched; values recorded."""
    never_by_itself()
    told: dict[str, Any] = {}
    for is_watched in (False, True):
        model = moved(made(lambda: Layers(n_layers)))
        where = folder / "r.zarr"
        run = nbp.watch(model, store=where, probes=probes, budget=None) if is_watched else None
        optimizer = SGD(model.parameters(), lr=0.1, foreach=False)
        per_step = []
        for step in range(3):
            kernels.clear()
            optimizer.zero_grad()
            loss_on(model(on_device(batch(step)))).backward()
            optimizer.step()
            per_step.append(Counter(kernels))
        told["watched" if is_watched else "plain"] = per_step
        if run is not None:
            told["copied in a step"] = len(copies)
            kernels.clear()
            run.close()
            told["flush"] = sum(Counter(kernels).values())
            told["copies of the flush"] = len(copies)
            told["values"] = int(run.data.load().isel(step=1).count().to_array().sum())
    told["more"] = sum((told["watched"][1] - told["plain"][1]).values())
    return told


def test_a_due_step_launches_fewer_kernels_than_it_has_values(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(asked, tmp_path, 8, "default")
    assert told["values"] >= 8 * (9 + 6)
    assert told["more"] + told["flush"] / 3 < told["values"] / 2
    assert told["copied in a step"] == 0
    assert told["copies of the flush"] == 2, "the values, and the losses"


def test_what_is_read_of_parameters_takes_as_many_kernels_for_many_as_for_few(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    probes = {nn.Linear: OF_PARAMETERS}
    few = accelerator.run(asked, tmp_path / "few", 2, probes)
    many = accelerator.run(asked, tmp_path / "many", 12, probes)
    assert many["values"] >= 12 * len(OF_PARAMETERS)
    assert many["more"] == few["more"]
    assert many["flush"] == few["flush"]


def test_an_output_is_copied_at_once_and_reduced_together_with_others(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    probes = {nn.Linear: OF_OUTPUTS}
    few = accelerator.run(asked, tmp_path / "few", 2, probes)
    many = accelerator.run(asked, tmp_path / "many", 12, probes)
    assert many["more"] - few["more"] == 10, "one copy for each layer more"
    assert many["flush"] == few["flush"]


# ---------------------------------------------------------------- by the profiler


def operators(n: int, parts: frozenset[str], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Operators, but views, that our code calls to measure so many tensors, as on a device."""
    monkeypatch.setattr(measure, "_is_measured_here", lambda tensor: False)
    monkeypatch.setattr(measure, "dense", lambda tensor: None)
    tensors = [torch.randn(64) for _ in range(n)]
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        measure.STAT.measure_all(tensors, parts)
    events = profiled.events()
    assert events is not None
    called = [event.name for event in events if event.cpu_parent is None]
    views = {"aten::detach", "aten::reshape", "aten::view", "aten::unsqueeze", "aten::select"}
    return Counter(name for name in called if name.startswith("aten::") and name not in views)


@pytest.mark.parametrize("parts", [{"sumsq"}, {"sumsq", "moments", "zeros", "nonfinite"}])
def test_the_profiler_counts_as_many_reductions_for_many_tensors_as_for_one(
    parts: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, many = (operators(n, frozenset(parts), monkeypatch) for n in (1, 20))
    assert one == many
    assert 2 <= sum(one.values()) <= 12


def test_a_full_buffer_is_reduced_and_another_begun(accelerator: Accelerator) -> None:
    n_rows, n_kernels = accelerator.run(filled)
    assert n_rows == [device_stat.MOST_ROWS, 1]
    assert n_kernels < device_stat.MOST_ROWS + 1 + 20


def filled() -> tuple[list[int], int]:
    """Measure one tensor more than a buffer has rows."""
    tensors = [on_device(torch.full((6,), float(n))) for n in range(device_stat.MOST_ROWS + 1)]
    kernels.clear()
    states: list[Any] = [measure.measure(one, frozenset({"sumsq", "moments"})) for one in tensors]
    sums = [state.rows[0].source.sums() for state in states]
    widths = [one.shape[1] for one in dict.fromkeys(sums)]
    return widths, len(kernels)
