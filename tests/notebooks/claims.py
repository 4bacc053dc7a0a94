"""What notebooks of papers must have found, read from the records that they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import notebook_probe as nbp

__all__ = ["CLAIMS"]


def edge_of_stability(folder: Path) -> None:
    """Full-batch gradient descent: sharpness rises to 2/lr and hovers there (2103.00065)."""
    runs = [nbp.open_run(path) for path in sorted(folder.glob("runs/*.zarr"))]
    assert len(runs) == 2
    for run in runs:
        sharpness, lr = run.series("", "sharpness"), run.series("", "lr")
        of_edge = (sharpness * lr / 2).values
        assert of_edge[0] < 0.6
        assert 0.95 < of_edge[-20:].mean() < 1.1
        assert abs(of_edge[-20:] - 1).max() < 0.2


def batchnorm_in_small_batches(folder: Path) -> None:
    """The discrepancy of the mean falls as one over the root of the batch size (2210.05153)."""
    runs = {
        int(run.name.rpartition(" ")[2]): run
        for run in map(nbp.open_run, folder.glob("runs/*.zarr"))
    }
    sizes = sorted(runs)
    assert sizes == [2, 4, 8, 16, 32, 64, 128]
    tid = [float(runs[size].series("1", "bn_mean_tid")[10:].mean()) for size in sizes]
    slope = np.polyfit(np.log(sizes), np.log(tid), 1)[0]
    assert -0.55 < slope < -0.45
    assert [size for size in sizes if runs[size].alerts.of("batchnorm_mismatch")] == [2]


def gain_and_depth(folder: Path) -> None:
    """A layer with ReLU multiplies what goes through it by gain / sqrt(2) (He 2015)."""
    runs = list(map(nbp.open_run, folder.glob("runs/*.zarr")))
    assert len(runs) == 3
    for run in runs:
        gain = float(run.name.rpartition(" ")[2])
        for quantity, direction in (("output_rms", 1), ("output_grad_rms", -1)):
            sizes = run.data[quantity].sel(step=0).dropna("module").values[:16]
            slope = np.polyfit(np.arange(16), np.log(sizes), 1)[0]
            assert np.exp(direction * slope) == pytest.approx(gain / np.sqrt(2), rel=0.05)


def rank_and_depth(folder: Path) -> None:
    """Forty bare layers leave few directions, normalised ones nearly all (2003.01652)."""
    runs = {run.name: run for run in map(nbp.open_run, folder.glob("runs/*.zarr"))}
    ranks = {
        name: run.data.effective_rank.sel(step=0).dropna("module").values
        for name, run in runs.items()
    }
    assert ranks["bare"][0] > 25
    assert ranks["bare"][-1] < 6
    assert ranks["with BatchNorm"].min() > 35


def one_bad_image(folder: Path) -> None:
    """A step is looked at that nobody measured: trained again, equal bit for bit, as a branch."""
    place = folder / "runs" / "one_bad_image.zarr"
    first, again, mended = (nbp.open_run(place, branch=branch) for branch in (1, 2, 3))
    losses = [run.series("", "loss").sel(step=slice(100, 130)).values for run in (first, again)]
    assert (losses[0] == losses[1]).all()
    inputs = again.series("0", "input_abs_max").values
    assert inputs.max() > 50 * np.median(inputs)
    scores = [run.series("", "test_accuracy").values[-1] for run in (first, mended)]
    assert scores[0] < 0.2 < 0.85 < scores[1]


def own_views(folder: Path) -> None:
    """Gradients vanish on their way through nine tanh layers until the last ones have learned."""
    [run] = map(nbp.open_run, folder.glob("runs/*.zarr"))
    norms = run.data.grad_norm.dropna("module", how="all").values
    assert norms.shape == (10, 400)
    assert norms[0, 0] < 0.1 * norms[-1, 0]
    assert np.mean(norms[0, -50:] / norms[-1, -50:]) > 0.5
    assert run.data.loss.dropna("module", how="all").values[0, -20:].mean() < 1.0
    assert (folder / "depth.png").read_bytes().startswith(b"\x89PNG")


def large_directions_first(folder: Path) -> None:
    """Of a linear autoencoder the code collapses first, and then unfolds (1312.6120)."""
    [run] = map(nbp.open_run, folder.glob("runs/*.zarr"))
    ranks = run.series("0", "effective_rank").values
    assert ranks.min() < 4 < 7 < min(ranks[0], ranks[-1])
    tests = run.series("", "test_loss")
    assert tests["step"].values.tolist() == [*range(6, 606, 6)]
    assert tests.values[-1] < 0.5 * tests.values[0]


def learning_rate_by_hand(folder: Path) -> None:
    """A rate raised by hand wins; what went on from a checkpoint is equal up to that step."""
    place = folder / "runs" / "small_gpt.zarr"
    raised, alone = (nbp.open_run(place, branch=branch) for branch in (1, 2))
    [change] = [event for event in raised.events if event.kind == "set"]
    [resumed] = [event for event in alone.events if event.kind == "resume"]
    assert resumed.step % 150 > 0  # batches of an epoch
    assert resumed.step < change.step < 250
    losses = [run.series("", "loss").values for run in (raised, alone)]
    differing = np.flatnonzero(losses[0] != losses[1])
    assert len(losses[0]) == len(losses[1]) == 300
    assert differing[0] == change.step + 1
    tests = [run.series("", "test_loss").values for run in (raised, alone)]
    assert tests[0][-1] < tests[1][-1] - 0.2


def debug_a_training(folder: Path) -> None:
    """A dead branch, a rate of the head and a mask: each is found where it is."""
    place = folder / "runs" / "buggy.zarr"
    dead, still, seeing = (nbp.open_run(place, branch=branch) for branch in (1, 2, 3))
    mended = nbp.open_run(folder / "runs" / "mended.zarr")
    assert (dead.series("blocks.1.mlp.2", "zero_fraction").values[:10] == 1).all()
    assert (dead.series("blocks.0.mlp.2", "zero_fraction").values < 1).all()
    assert seeing.series("blocks.1.mlp.2", "zero_fraction").values.max() < 1
    assert still.data.update_ratio.isel(step=-1).to_series().idxmin() == "head.1"
    held = [event.text for event in still.events if event.kind == "pause"]
    assert any("head.1" in text for text in held)
    ends = [float(run.series("", "loss").values[-20:].mean()) for run in (seeing, mended)]
    assert ends[0] < 0.5 * ends[1]


def all_of_one_training(folder: Path) -> None:
    """A collector has the first unit and every tenth, and all there is of a training."""
    place = folder / "summary" / "lr-0.05"
    run = nbp.open_run(place / "record.zarr")
    due = [0, *range(9, 168, 10)]
    for module, quantity in (("", "loss"), ("", "input_image"), ("1.conv2.weight", "weight_min")):
        assert run.series(module, quantity).step.values.tolist() == due
    counts = run.series("1.conv1.weight", "param_histogram").sum("regular_bin")
    assert (counts == 16 * 16 * 3 * 3).all()
    assert run.series("", "input_image").shape[1:] == (7 * 8, 8 * 8, 3)  # fifty, eight in a row
    assert [one.class_name for one in run.graph().modules].count("Block") == 2
    lineage = run.lineage()
    assert lineage["train"]["step_num"] == 6 * 28
    assert lineage["eval"]["metrics"]["loss"] < 0.1
    found = nbp.landscape(place)
    assert found.path_loss.values[-1] == found.loss_at_origin == found.path_loss.values.min()
    for axis in "xy":
        way = found[f"path_{axis}"].values
        assert found[axis].values[0] < way.min() < way.max() < found[axis].values[-1]
    table = nbp.open_runs(str(folder / "summary" / "*" / "record.zarr")).lineage()
    best = table.sort("loss.best").plain()[0]
    assert best["custom.lr"] == 0.05


def twelve_configurations(folder: Path) -> None:
    """Depth and rate decide; the better of two rates moves weights by their ratio, at once."""
    place = folder / "home" / "experiments" / "digits" / "twelve"
    runs = {
        (run.config["model"]["depth"], run.config["learning_rate"]["learning_rate"]): run
        for run in map(nbp.open_run, place.glob("*/record.zarr"))
        if run.name not in ("taught", "fresh")
    }
    assert {*runs} == {(depth, rate) for depth in (1, 3, 6) for rate in (0.003, 0.03, 0.1, 1.0)}
    right = {
        key: float(run.series("", "valid_test_accuracy").dropna("step").values[-1])
        for key, run in runs.items()
    }
    assert sorted(right, key=right.__getitem__)[:-3:-1] == [(1, 0.1), (1, 0.03)]
    assert right[1, 0.1] > 0.9
    assert max(right[depth, 1.0] for depth in (1, 3, 6)) < 0.3
    moved = [runs[1, rate].data.update_ratio.isel(step=0).dropna("module") for rate in (0.1, 0.03)]
    np.testing.assert_allclose(moved[0] / moved[1], 0.1 / 0.03, rtol=1e-3)
    taught, fresh = (
        nbp.open_run(place / name / "record.zarr").series("", "valid_test_accuracy").dropna("step")
        for name in ("taught", "fresh")
    )
    assert (taught.sel(step=slice(5, 20)) > fresh.sel(step=slice(5, 20)) + 0.05).all()


CLAIMS: dict[str, Callable[[Path], None]] = {
    "all_of_one_training": all_of_one_training,
    "batchnorm_in_small_batches": batchnorm_in_small_batches,
    "debug_a_training": debug_a_training,
    "edge_of_stability": edge_of_stability,
    "gain_and_depth": gain_and_depth,
    "large_directions_first": large_directions_first,
    "learning_rate_by_hand": learning_rate_by_hand,
    "one_bad_image": one_bad_image,
    "own_views": own_views,
    "rank_and_depth": rank_and_depth,
    "twelve_configurations": twelve_configurations,
}
"""By the name of the notebook."""
