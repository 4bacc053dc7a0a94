"""Series that reach back: quantities of checkpoints, at their steps of the record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError, NotApplicableError
from notebook_probe.train import Checkpoints, Loop
from tests.train.checkpoints.kinds import loop_of, same_state
from tests.train.conftest import a_loop, batches

QUIET: dict[str, Any] = {"probes": None, "budget": None}
Trained = Callable[..., tuple[Loop, nbp.Run]]


@pytest.fixture
def trained(tmp_path: Path) -> Any:
    """A conv net with batch norm, trained for 8 steps, of which every second was kept."""
    loop, data = loop_of("conv")
    loop.add(Checkpoints(tmp_path / "kept", every=2))
    run = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    loop.run_epochs(data, 2)
    yield loop, run
    run.close()


X = torch.randn(5, 1, 6, 6, generator=torch.Generator().manual_seed(2))


def output_rms(path: str, x: torch.Tensor) -> float:
    """Of the whole model with the weights of a file, in float64."""
    model = loop_of("conv", seed=5)[0].trainer.model
    model.load_state_dict(torch.load(path, weights_only=True)["trainer"]["model"])
    with torch.no_grad():
        out = model.eval()(x).double()
    return float(out.square().mean().sqrt())


def test_a_quantity_is_found_in_every_checkpoint(trained: Any) -> None:
    loop, run = trained
    before = [run.series("", "loss").values.tolist(), dict(run.data.sizes)]
    found = nbp.recompute(run, loop.checkpoints, ["output_rms", "effective_rank"], "", [X])
    assert found == [2, 4, 6, 8]
    series = run.series("", "eval_output_rms")
    assert series.dropna("step").step.values.tolist() == found
    expected = [output_rms(one.path, X) for one in loop.checkpoints]
    np.testing.assert_allclose(series.dropna("step"), expected, rtol=1e-5)
    assert len(set(expected)) == 4
    assert run.series("", "eval_effective_rank").dropna("step").size == 4
    assert run.series("", "loss").values.tolist() == before[0]


def test_the_kept_batch_is_the_data_where_none_is_given(trained: Any, tmp_path: Path) -> None:
    loop, run = trained
    with pytest.raises(ValueError, match="recompute: of which data"):
        nbp.recompute(run, tmp_path / "kept", "output_rms", "")
    run.probe_batch(X, torch.zeros(5).long(), nn.functional.cross_entropy)
    nbp.recompute(run, tmp_path / "kept", "output_rms", "")
    expected = [output_rms(one.path, X) for one in loop.checkpoints]
    series = run.series("", "eval_output_rms").dropna("step")
    np.testing.assert_allclose(series, expected, rtol=1e-5)


def test_training_goes_on_as_if_nothing_had_been_looked_at(tmp_path: Path) -> None:
    twins = []
    for looked in (True, False):
        loop, data = loop_of("conv")
        loop.add(Checkpoints(tmp_path / f"kept{looked}", every=2))
        with loop.watch(store=tmp_path / f"{looked}.zarr", **QUIET) as run:
            loop.run_epochs(data, 1)
            modes = [module.training for module in loop.trainer.model.modules()]
            if looked:
                nbp.recompute(run, tmp_path / "keptTrue", "output_rms", "*", [X])
            assert [module.training for module in loop.trainer.model.modules()] == modes
            loop.run_epochs(data, 1)
            assert not [probe for probe in run.probes() if probe.quantity == "eval_output_rms"]
            losses = run.series("", "loss").values.tolist()
        twins.append((losses, loop.trainer.state_dict()))
    assert same_state(*twins)


def test_other_series_keep_what_was_measured_of_other_data(trained: Any) -> None:
    loop, run = trained
    run.attach("", "output_rms", phase="eval")
    model = loop.trainer.model
    with run.at_step(4), torch.no_grad():
        model.eval()(100 * X)
    model.train()
    before = run.series("", "eval_output_rms").values.tolist()
    nbp.recompute(run, loop.checkpoints, "output_abs_max", "", [X])
    assert run.series("", "eval_output_abs_max").dropna("step").step.values.tolist() == [2, 4, 6, 8]
    assert run.series("", "eval_output_rms").dropna("step").values.tolist() == before
    nbp.recompute(run, loop.checkpoints, "output_rms", "", [X])
    assert [probe.quantity for probe in run.probes()] == ["eval_output_rms"]  # the user's own


@pytest.mark.slow
def test_a_training_that_is_over_is_looked_at_with_its_record(tmp_path: Path, trained: Any) -> None:
    loop, run = trained
    run.close()
    later, _ = loop_of("conv", seed=3)
    with nbp.watch(later.trainer.model, store=tmp_path / "run.zarr", resume=True, **QUIET) as run:
        nbp.recompute(run, tmp_path / "kept", "output_rms", "", [X])
    series = nbp.open_run(tmp_path / "run.zarr").series("", "eval_output_rms").dropna("step")
    expected = [output_rms(one.path, X) for one in loop.checkpoints]
    np.testing.assert_allclose(series, expected, rtol=1e-5)


def test_a_folder_means_the_line_of_the_one_saved_last(tmp_path: Path) -> None:
    loop, data = a_loop(), batches(8)
    loop.add(Checkpoints(tmp_path / "kept", every=2))
    run = loop.watch(store=tmp_path / "run.zarr", **QUIET)
    loop.run_epochs(data, 1)
    branch = loop.rewind(5, **QUIET)
    assert branch is not None
    loop.run_to_global_step(data, 6)
    x = data[0][0]
    assert nbp.recompute(branch, tmp_path / "kept", "output_rms", "", [x]) == [2, 4, 6]
    branch.close()
    assert run.closed


def test_what_cannot_be_measured_is_refused_and_the_weights_stay(
    trained: Any, tmp_path: Path
) -> None:
    loop, run = trained
    before = [value.clone() for value in loop.trainer.model.state_dict().values()]
    with pytest.raises(CheckpointError, match="no checkpoint in"):
        nbp.recompute(run, tmp_path / "empty", "output_rms", "", [X])
    with pytest.raises(NotApplicableError, match="weight_norm needs"):
        nbp.recompute(run, loop.checkpoints, "weight_norm", "*", [X])
    with pytest.raises(RuntimeError, match="Expected 3D"):
        nbp.recompute(run, loop.checkpoints, "output_rms", "", [X[:, 0, 0]])
    a_loop().save_checkpoint(tmp_path / "other")
    with pytest.raises(
        CheckpointError, match=r"step_00000000.pt is of another model: missing ther"
    ):
        nbp.recompute(run, tmp_path / "other", "output_rms", "", [X])
    assert all(map(torch.equal, before, loop.trainer.model.state_dict().values()))
    assert not run.probes()


def test_a_record_that_was_opened_has_no_model_to_look_at(trained: Any) -> None:
    _, run = trained
    with pytest.raises(TypeError, match=r"OpenedRun\): .* nbp.watch\(model, store=..., resume"):
        nbp.recompute(nbp.open_run(run.location), "kept", "output_rms", "", [X])  # type: ignore[arg-type]
