"""From the snapshots of a folder to a dataset that any xarray opens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn
from torch.nn.functional import mse_loss

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError
from notebook_probe.summary.landscape.draw import landscape
from notebook_probe.summary.landscape.metadata import FOLDER
from notebook_probe.summary.landscape.progress import LandscapeProgress
from notebook_probe.summary.landscape.settings import LandscapeSettings
from notebook_probe.summary.landscape.writing import SnapshotWriter

X = torch.randn(32, 3, generator=torch.Generator().manual_seed(0))
Y = X @ torch.tensor([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
BATCHES = [*zip(X.split(8), Y.split(8), strict=True)]


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    """Of a training of six steps, as long as two intervals."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.5)
    given = LandscapeSettings.of(
        {"intervals": [[1, 2, 3], [4, 5, 6]], "landscape_size": 4, "num_samples": 16}
    )
    writer = SnapshotWriter(tmp_path, given)
    for unit in range(1, 7):
        optimizer.zero_grad()
        mse_loss(model(X), Y).backward()
        optimizer.step()
        writer.take(model, unit)
    writer.end()
    return tmp_path


def draw(folder: Path, **more: Any) -> xr.Dataset:
    return landscape(folder, nn.Linear(3, 2), mse_loss, BATCHES, progress=False, **more)


def loss_of(state: dict[str, Tensor]) -> float:
    """On the first two batches, by hand."""
    x, y = X[:16].double().numpy(), Y[:16].double().numpy()
    weight, bias = (state[name].double().numpy() for name in ("weight", "bias"))
    return float(np.mean((x @ weight.T + bias - y) ** 2))


def state_of(folder: Path, unit: int) -> dict[str, Tensor]:
    return torch.load(folder / FOLDER / f"Linear_{unit}_step.pt", weights_only=True)["parameters"]


@pytest.mark.slow
def test_a_train_landscape_has_the_way_and_its_losses(snapshots: Path) -> None:
    found = draw(snapshots)
    assert dict(found.sizes) == {"y": 4, "x": 4, "number": 3}
    assert found.number.values.tolist() == [4, 5, 6]
    for unit in (4, 5, 6):
        own = loss_of(state_of(snapshots, unit))
        assert float(found.path_loss.sel(number=unit)) == pytest.approx(own, rel=1e-5)
    assert found.loss_at_origin == pytest.approx(loss_of(state_of(snapshots, 6)), rel=1e-5)
    assert (found.attrs["origin"], found.attrs["method"], found.attrs["which"]) == (
        6,
        "svd",
        "train",
    )
    assert found.attrs["n_batches"] == 2
    span = np.ptp(found.path_x.values)
    assert float(found.x[0]) == pytest.approx(float(found.path_x.min()) - 0.2 * span)


def test_every_interval_and_the_end_have_one_of_their_own(snapshots: Path) -> None:
    first = draw(snapshots, interval=0)
    assert first.number.values.tolist() == [1, 2, 3]
    result = draw(snapshots, which="result")
    assert [*result.data_vars] == ["loss"]
    assert (float(result.x[0]), float(result.y[-1])) == (-1.0, 1.0)
    assert result.attrs["normalise"] == "filter"
    names = sorted(path.name for path in (snapshots / FOLDER).glob("*.zarr"))
    draw(snapshots)
    assert names == ["result_6.zarr", "train_1-3.zarr"]


def test_the_linear_models_landscape_is_the_parabola_of_its_losses(snapshots: Path) -> None:
    found = draw(snapshots, landscape_size=5, method="mindspore")
    rows = found.loss.values
    second = np.diff(rows, 2, axis=1)
    np.testing.assert_allclose(second, second.mean(), rtol=1e-3)
    assert (second > 0).all()


def test_wrappers_are_no_part_of_the_model(snapshots: Path) -> None:
    model = nn.Linear(3, 2)
    found = landscape(snapshots, nn.DataParallel(model), mse_loss, BATCHES, progress=False)
    xr.testing.assert_equal(found, draw(snapshots))
    writer = SnapshotWriter(snapshots / "wrapped", LandscapeSettings())
    writer.take(nn.DataParallel(model), 1)
    writer.end()
    assert (snapshots / "wrapped" / FOLDER / "Linear_1_step.pt").exists()


def test_a_model_that_is_watched_is_left_alone(snapshots: Path) -> None:
    model = nn.Linear(3, 2)
    with nbp.watch(model, store=snapshots / "run.zarr", probes={"": ["output_mean"]}) as run:
        found = landscape(snapshots, model, mse_loss, BATCHES, progress=False)
        assert run.controls.status_head().step == 0
    xr.testing.assert_equal(found, draw(snapshots))


def test_what_was_drawn_opens_again_and_without_this_package(snapshots: Path) -> None:
    drawn = draw(snapshots)
    xr.testing.assert_identical(nbp.landscape(snapshots), drawn)
    plain = xr.open_zarr(snapshots / FOLDER / "train_4-6.zarr", consolidated=False)
    np.testing.assert_array_equal(plain.loss, drawn.loss)
    plain.close()
    again = draw(snapshots, landscape_size=3)
    xr.testing.assert_identical(landscape(snapshots), again)
    assert not [*(snapshots / FOLDER).glob(".*")], "nothing is left beside"


def test_losses_that_are_not_finite_are_kept_as_they_are(snapshots: Path) -> None:
    def bad(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.sum() / 0.0) + 0 * targets.sum()

    drawn = landscape(snapshots, nn.Linear(3, 2), bad, BATCHES, progress=False)
    assert not np.isfinite(drawn.loss_at_origin)
    xr.testing.assert_identical(landscape(snapshots), drawn)


def test_settings_may_be_others_than_the_collector_was_told(snapshots: Path) -> None:
    found = draw(snapshots, which="result", landscape_size=3, num_samples=1, normalise="tensor")
    assert found.loss.shape == (3, 3)
    assert (found.attrs["n_batches"], found.attrs["normalise"]) == (1, "tensor")
    with pytest.raises(ValueError, match="landscape_size=300; allowed: 3 to 256"):
        draw(snapshots, landscape_size=300)


def test_what_it_will_take_is_said_before_it_goes_on(
    snapshots: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    landscape(snapshots, nn.Linear(3, 2), mse_loss, BATCHES)
    assert re.fullmatch(
        r"train landscape 4-6: 1 of 20 losses, about 1 s to go\n", capsys.readouterr().out
    )
    told: list[LandscapeProgress] = []
    landscape(snapshots, nn.Linear(3, 2), mse_loss, BATCHES, progress=told.append)
    assert [one.done for one in told] == [*range(1, 21)]
    assert not capsys.readouterr().out


def test_a_bar_goes_to_the_end(snapshots: Path, capsys: pytest.CaptureFixture[str]) -> None:
    landscape(snapshots, nn.Linear(3, 2), mse_loss, BATCHES, progress=True)
    assert "20/20" in capsys.readouterr().err


def test_one_that_is_cancelled_is_not_kept(snapshots: Path) -> None:
    asked: list[int] = []

    def is_cancelled() -> bool:
        asked.append(1)
        return len(asked) > 10

    found = draw(snapshots, is_cancelled=is_cancelled)
    assert found.attrs["n_evaluated"] == int(np.isfinite(found.loss).sum()) == 7
    with pytest.raises(CheckpointError, match=r"no landscape 'train_4-6'.*there are: none"):
        landscape(snapshots)


def test_an_interrupt_leaves_nothing_behind(snapshots: Path) -> None:
    def interrupt(progress: LandscapeProgress) -> None:
        if progress.done == 7:
            raise KeyboardInterrupt

    model = nn.Linear(3, 2)
    before = {name: own.clone() for name, own in model.state_dict().items()}
    with pytest.raises(KeyboardInterrupt):
        landscape(snapshots, model, mse_loss, BATCHES, progress=interrupt)
    assert all(torch.equal(model.state_dict()[name], own) for name, own in before.items())
    assert sorted(path.suffix for path in (snapshots / FOLDER).iterdir()) == [".json"] + 6 * [".pt"]


def test_mistakes_are_said(snapshots: Path) -> None:
    with pytest.raises(TypeError, match="all of them, or none"):
        landscape(snapshots, nn.Linear(3, 2))
    with pytest.raises(ValueError, match="which='trian'; close: 'train'"):
        draw(snapshots, which="trian")
    with pytest.raises(CheckpointError, match=r"does not fit Linear: other shapes: weight"):
        landscape(snapshots, nn.Linear(4, 2), mse_loss, BATCHES, progress=False)
    with pytest.raises(CheckpointError, match=r"does not fit Sequential"):
        landscape(snapshots, nn.Sequential(nn.Linear(3, 2)), mse_loss, BATCHES, progress=False)
