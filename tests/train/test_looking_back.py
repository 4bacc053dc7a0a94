"""Quantities that look back at earlier steps, over checkpoints: as if nothing had ended."""

from __future__ import annotations

import io
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.quantities import quantities
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.train import Checkpoints, Loop, Trainer
from tests.models import normal

pytestmark = pytest.mark.xdist_group("looking back")  # one process makes what they share

N, AT = 20, 12
DATA = [(normal(i, 8, 8), torch.arange(8) % 3) for i in range(10)]

OF_WEIGHTS = ["distance_from_init", "layer_rotation", "sign_flips", "grad_cosine"]
OF_OUTPUTS = ["dead_fraction", "distribution_shift", "saturation"]
STEP = ["loss_ema", "loss_spike_score"]


def a_loop() -> Loop:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return Loop(Trainer(model, nn.functional.cross_entropy, optimizer))


def watched(loop: Loop, store: Path, when: str = "every(1)", **options: Any) -> nbp.Run:
    run = loop.watch(store=store, budget=None, probes=None, **options)
    for where, names in ((["0", "2"], OF_WEIGHTS), ("1", OF_OUTPUTS), ("", STEP)):
        run.attach(where, names, when)
    return run


def values(run: nbp.Run | nbp.OpenedRun) -> dict[tuple[str, str], dict[int, float]]:
    """Every value of every series, by module and name."""
    found = {}
    for place in ("0", "2", "1", ""):
        for name in {"": STEP, "1": OF_OUTPUTS}.get(place, OF_WEIGHTS):
            series = run.series(place, name).dropna("step")
            found[place, name] = dict(zip(series.step.values.tolist(), series.values, strict=True))
    return found


def same(found: Any, wanted: Any) -> None:
    assert found.keys() == wanted.keys()
    for key, one in wanted.items():
        assert found[key] == pytest.approx(one, rel=1e-6), key


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[tuple[str, str], Any]]:
    """The uninterrupted training, by schedule."""
    found = {}
    for when in ("every(1)", "every(5)"):
        loop = a_loop()
        run = watched(loop, tmp_path_factory.mktemp("whole") / "run.zarr", when)
        loop.run_epochs(DATA, N // len(DATA))
        found[when] = values(run)
        run.close()
    return found


def interrupted(folder: Path, when: str) -> None:
    """A training that ended at a later step than its checkpoint is of."""
    loop = a_loop()
    run = watched(loop, folder / "run.zarr", when)
    loop.add(Checkpoints(folder / "kept", every=AT))
    loop.run_epochs(DATA, N // len(DATA))
    run.close()


@pytest.mark.parametrize("when", ["every(1)", "every(5)"])
@pytest.mark.parametrize("loads_first", [True, False])
def test_a_resumed_training_has_the_values_of_one_that_never_stopped(
    loads_first: bool, when: str, whole: Any, tmp_path: Path
) -> None:
    interrupted(tmp_path, when)
    loop = a_loop()
    if loads_first:
        loop.load_checkpoint(tmp_path / "kept", AT)
    run = watched(loop, tmp_path / "run.zarr", when, step=AT)
    if not loads_first:
        loop.load_checkpoint(tmp_path / "kept", AT)
    loop.run_epochs(DATA, N // len(DATA))
    same(values(run), whole[when])
    assert not [event for event in run.events if event.kind == "missed"]
    run.close()


def test_without_what_was_gathered_there_are_gaps_and_an_event(whole: Any, tmp_path: Path) -> None:
    """Never a number: the weight at the beginning is not known, nor the losses before."""
    interrupted(tmp_path, "every(1)")
    kept = tmp_path / "kept"
    loop = a_loop()
    loop.load_checkpoint(kept, AT)
    loop.look_back(None)
    run = watched(loop, tmp_path / "run.zarr", step=AT)
    loop.run_epochs(DATA, N // len(DATA))
    found = values(run)
    for key, wanted in whole["every(1)"].items():
        assert found[key] == pytest.approx({at: wanted[at] for at in found[key]}, rel=1e-6), key
    for name in ("distance_from_init", "layer_rotation"):
        assert max(found["0", name]) == AT - 1
    for name in STEP:
        assert max(found["", name]) == AT - 1
    assert min(step for step in found["0", "grad_cosine"] if step >= AT) == AT + 1
    (event,) = [event for event in run.events if event.kind == "missed"]
    assert event.step == AT
    assert "distance_from_init" in event.text
    assert "dead_fraction" not in event.text, "each of its values is of one step"
    run.close()


def test_a_window_that_was_cut_has_a_gap_at_its_next_due_step_alone(
    whole: Any, tmp_path: Path
) -> None:
    """Of units that were dead in the steps since the last due one some steps were not seen."""
    interrupted(tmp_path, "every(5)")
    loop = a_loop()
    loop.load_checkpoint(tmp_path / "kept", AT)
    loop.look_back(None)
    run = watched(loop, tmp_path / "run.zarr", "every(5)", step=AT)
    loop.run_epochs(DATA, N // len(DATA))
    found, wanted = values(run)["1", "dead_fraction"], whole["every(5)"]["1", "dead_fraction"]
    gone = [step for step in wanted if step not in found]
    assert len(gone) == 1
    assert gone[0] == min(step for step in wanted if step >= AT)
    run.close()


def test_what_is_new_in_a_resumed_run_begins_there(tmp_path: Path) -> None:
    interrupted(tmp_path, "every(1)")
    loop = a_loop()
    loop.load_checkpoint(tmp_path / "kept", AT)
    run = loop.watch(store=tmp_path / "run.zarr", step=AT, probes=None)
    run.attach("0.bias", "distance_from_init")
    loop.run_epochs(DATA, N // len(DATA))
    series = run.series("0.bias", "distance_from_init").dropna("step")
    assert series.step.values.tolist() == [*range(AT, N)]
    assert float(series[0]) == 0.0
    assert not [event for event in run.events if event.kind == "missed"]
    run.close()


@pytest.mark.parametrize("step", [AT, AT + 2])
def test_going_back_to_a_checkpoint_goes_on_and_between_two_there_is_a_gap(
    step: int, whole: Any, tmp_path: Path
) -> None:
    loop = a_loop()
    watched(loop, tmp_path / "run.zarr")
    loop.add(Checkpoints(tmp_path / "kept", every=AT))
    loop.run_epochs(DATA, N // len(DATA))
    run = loop.rewind(step, probes=None)
    assert run is not None
    run.attach({"0": ["distance_from_init"]})
    loop.run_steps(DATA, 4)
    series = run.series("0", "distance_from_init").dropna("step")
    wanted = whole["every(1)"]["0", "distance_from_init"]
    after = [at for at in series.step.values.tolist() if at >= step]
    assert (len(after) > 0) == (step == AT)
    if after:
        assert float(series.sel(step=AT)) == pytest.approx(wanted[AT], rel=1e-6)
        assert not [event for event in run.events if event.kind == "missed"]
    else:
        assert [event.step for event in run.events if event.kind == "missed"] == [step]
    run.close()


@window_quantity(name="largest_so_far")
class Largest:
    """Largest norm of the gradient so far."""

    def __init__(self) -> None:
        self.largest = 0.0

    def reset(self) -> None:
        """It stays."""

    def update(self, grad: torch.Tensor) -> None:
        self.largest = max(self.largest, float(grad.norm()))

    def compute(self) -> float:
        return self.largest


def trained(model: nn.Module, run: nbp.Run, steps: range) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in steps:
        optimizer.zero_grad()
        (model(normal(step, 5, 4)) * (9.0 if step == 1 else 1.0)).square().mean().backward()
        optimizer.step()
    run.controls.settle()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_window_of_ones_own_goes_on_in_a_loop_of_ones_own(keeps: bool, tmp_path: Path) -> None:
    """What it kept over its resets makes each number wrong that is made without it."""
    model = nn.Linear(4, 1)
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes={"weight": [Largest]})
    trained(model, run, range(3))
    file = io.BytesIO()
    torch.save(run.state_dict(), file)
    before = run.series("weight", "largest_so_far").values.tolist()
    run.close()
    run = nbp.watch(model, store=tmp_path / "run.zarr", step=3, probes={"weight": [Largest]})
    if keeps:
        file.seek(0)
        run.load_state_dict(torch.load(file, weights_only=True))
    trained(model, run, range(3, 6))
    after = run.series("weight", "largest_so_far").dropna("step").values.tolist()
    assert after == [*before, *([before[-1]] * 3 if keeps else [])]
    assert bool([event for event in run.events if event.kind == "missed"]) != keeps
    run.close()


@pytest.mark.parametrize("keeps", [True, False])
def test_a_quantity_for_which_the_first_step_is_planned_early_does_not_begin_another(
    keeps: bool, tmp_path: Path
) -> None:
    """Gradients of accumulations are read by hooks, which are set before the step begins."""

    def watch(model: nn.Module, **options: Any) -> nbp.Run:
        run = nbp.watch(model, store=tmp_path / "run.zarr", probes=None, budget=None, **options)
        run.attach("", "distance_from_init")
        run.attach("", "clip_coefficient")
        return run

    model = nn.Linear(4, 1)
    first = model.weight.detach().clone()
    run = watch(model)
    trained(model, run, range(3))
    state = run.state_dict()
    run.close()
    run = watch(model, step=3)
    if keeps:
        run.load_state_dict(state)
    reached = float((model.weight.detach() - first).norm())
    trained(model, run, range(3, 6))
    series = run.series("", "distance_from_init").dropna("step")
    assert series.step.values.tolist() == [*range(6 if keeps else 3)]
    assert not keeps or float(series.sel(step=3)) == pytest.approx(reached)
    assert run.series("", "clip_coefficient").step.values.tolist() == [*range(6)]
    run.close()


@pytest.mark.parametrize("kept", ["same", "another", "nothing"])
def test_what_is_compared_with_the_first_output_for_the_probe_batch(
    kept: str, tmp_path: Path
) -> None:
    """It goes on with the same batch, begins anew with another, and else has a gap."""

    def begin(**options: Any) -> tuple[Loop, nbp.Run]:
        loop = a_loop()
        run = loop.watch(store=tmp_path / "run.zarr", budget=None, probes=None, **options)
        seed = 99 if "step" in options and kept == "another" else 77
        run.probe_batch(normal(seed, 6, 8), torch.arange(6) % 3, nn.functional.cross_entropy)
        run.attach("0", "feature_drift")
        return loop, run

    loop, run = begin()
    loop.add(Checkpoints(tmp_path / "kept", every=AT))
    loop.run_epochs(DATA, N // len(DATA))
    whole = run.series("0", "feature_drift").values
    run.close()
    loop, run = begin(step=AT)
    loop.load_checkpoint(tmp_path / "kept", AT)
    if kept == "nothing":
        run.load_state_dict({"step": -1, "batch": None, "windows": []})
    loop.run_epochs(DATA, N // len(DATA))
    found = run.series("0", "feature_drift").reindex(step=range(N)).values
    assert found[:AT] == pytest.approx(whole[:AT])
    if kept == "same":
        assert found[AT:] == pytest.approx(whole[AT:], rel=1e-5)
    elif kept == "another":
        assert found[AT] == 0.0
        assert found[AT + 1] > 0.0
    else:
        assert all(map(math.isnan, found[AT:]))
    run.close()


class Everything(nn.Module):
    """A model at which every quantity of the catalogue that looks back has a place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.head = nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.act(self.norm(self.conv(x)))
        logits: torch.Tensor = self.head(features.flatten(1))
        return logits


def images(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    return normal(step, 8, 1, 6, 6), torch.arange(8) % 3


@pytest.mark.slow
def test_every_window_of_the_catalogue_continues_from_a_state(tmp_path: Path) -> None:
    """Due at every fourth step, from a state in the middle of two due ones."""
    model = Everything()
    optimizer = torch.optim.Adam(model.parameters())
    names = [one for one in quantities if quantities[one].spans_steps]

    def watch(**options: Any) -> nbp.Run:
        run = nbp.watch(model, store=tmp_path / "run.zarr", probes=None, budget=None, **options)
        run.probe_batch(*images(99), nn.functional.cross_entropy)
        found = set()
        for name in names:
            for place in ("", "conv", "norm", "act", "head"):
                with suppress(nbp.NotApplicableError):
                    run.attach(place, name, "every(4)")
                    found.add(name)
        assert found == {*names}
        return run

    def train(run: nbp.Run, steps: range) -> None:
        for step in steps:
            optimizer.zero_grad()
            for part in (0, 10):  # two micro-batches
                inputs, targets = images(step + part)
                run.batch(targets=targets, ids=torch.arange(8))
                nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    run = watch()
    train(run, range(6))
    file = io.BytesIO()
    torch.save(run.state_dict(), file)
    run.close()
    run = watch(step=6)
    file.seek(0)
    run.load_state_dict(torch.load(file, weights_only=True))
    train(run, range(6, 9))
    assert not [event.text for event in run.events if event.kind in {"missed", "error"}]
    run.close()
