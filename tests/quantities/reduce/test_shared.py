"""What several quantities of a place need in one step is measured, and solved for, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.quantities import quantities
from notebook_probe.quantities.reduce import spectrum
from notebook_probe.quantities.reduce.reductions import measuring, parts
from notebook_probe.quantities.reduce.solvers import eigvalsh

STEPS = 4


class Twice(nn.Module):
    """Calls one layer twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.layer(x))


def train(model: nn.Module, width: int = 3) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(0)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(8, width, generator=generator)).square().mean().backward()
        optimizer.step()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[tuple[int, ...]]]:
    """Replaces what measures a part by the same, counting; gives the shapes it was given."""

    def count(part: str) -> list[tuple[int, ...]]:
        shapes: list[tuple[int, ...]] = []
        real = measuring(part)

        def measure(tensor: Tensor, module: nn.Module | None, wanted: frozenset[str]) -> Any:
            shapes.append(tuple(tensor.shape))
            return real.measure(tensor, module, wanted)

        counting = replace(real, measure=measure, batched=None)
        changed = dict.fromkeys(real.parts, counting)
        monkeypatch.setattr(parts, "_members", {**parts._members, **changed})
        return shapes

    return count


def made_of(*features: str) -> list[str]:
    """Every quantity of these summaries alone."""
    return [q.name for q in quantities.values() if {f.name for f in q.features} <= {*features}]


Count = Callable[[str], list[tuple[int, ...]]]


def test_all_quantities_of_a_covariance_measure_it_once_a_step(
    counted: Count, tmp_path: Path
) -> None:
    shapes, names = counted("spectrum"), made_of("input_spectrum")
    model = nn.Sequential(nn.Linear(3, 3))
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"0": names}):
        train(model)
    assert len(names) >= 7
    assert shapes == [(8, 3)] * STEPS


def test_norm_moments_zeros_and_maximum_are_one_pass(counted: Count, tmp_path: Path) -> None:
    shapes = counted("sumsq")
    names = ["output_norm", "output_rms", "output_mean", "output_std", "output_abs_max"]
    names += ["zero_fraction", "nonfinite_fraction"]
    model = nn.Sequential(nn.Linear(3, 3))
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"0": names}):
        train(model)
    assert shapes == [(8, 3)] * STEPS


def test_each_call_of_a_step_is_measured_once(counted: Count, tmp_path: Path) -> None:
    shapes, model = counted("spectrum"), Twice()
    probes = {"layer": ["effective_rank", "participation_ratio"]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes):
        train(model)
    assert len(shapes) == 2 * STEPS


def test_a_weight_is_decomposed_once_for_all_who_ask(counted: Count, tmp_path: Path) -> None:
    shapes = counted("matrix")
    model = nn.Sequential(nn.Linear(3, 3))
    probes = {"0": ["spectral_norm", "weight_stable_rank"]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes):
        train(model)
    assert shapes == [(3, 3)] * STEPS


def test_what_is_due_at_different_steps_is_measured_in_those_alone(
    counted: Count, tmp_path: Path
) -> None:
    shapes = counted("spectrum")
    model = nn.Sequential(nn.Linear(3, 3))
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("0", "effective_rank", "every(2)")
        run.attach("0", "participation_ratio", "every(4)")
        train(model)
    assert len(shapes) == 2


@pytest.mark.parametrize("width", [3, 20])
def test_a_covariance_is_solved_once_for_all_its_eigenvalues(
    width: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    solved: list[Tensor] = []

    def counting(matrix: Tensor) -> Tensor:
        solved.append(matrix)
        return eigvalsh(matrix)

    monkeypatch.setattr(spectrum, "eigvalsh", counting)
    model = nn.Sequential(nn.Linear(width, 2))
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"0": made_of("input_spectrum")}):
        train(model, width)
    assert len(solved) == STEPS
