"""An evaluation of the state that a training goes on from is neither lost nor there twice."""

import warnings
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.train import Checkpoints, Dataset, Loop
from tests.train.conftest import a_loop, batches

QUIET: dict[str, Any] = {"probes": {"0": ["weight_norm"]}, "budget": None}
TEST = Dataset(batches(2, seed=5), "test")


@pytest.fixture(autouse=True)
def _without_a_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def evaluated_loop(folder: Path, **options: Any) -> tuple[Loop, nbp.Run]:
    """Evaluates every third state, and keeps it."""
    loop = a_loop()
    loop.eval_every(TEST, 3)
    loop.add(Checkpoints(folder / "kept", every=3, **options))
    if (folder / "kept").exists():
        loop.load_checkpoint(folder / "kept", 6)
    run = loop.watch(store=folder / "run.zarr", **QUIET)
    run.attach("0", "output_norm", phase="eval")
    return loop, run


def evaluations(source: Any) -> dict[int, float]:
    """Of each state what was logged; what was measured is of the same states."""
    logged = source.series("", "test_loss")
    assert (
        source.series("0", "eval_output_norm").step.values.tolist() == logged.step.values.tolist()
    )
    return dict(zip(logged.step.values.tolist(), logged.values.tolist(), strict=True))


def trained(folder: Path) -> dict[int, float]:
    loop, run = evaluated_loop(folder)
    loop.run_epochs(batches(8), 1)
    run.close()
    found = evaluations(nbp.open_run(folder / "run.zarr"))
    assert [*found] == [3, 6]
    return found


@pytest.mark.slow
def test_a_loop_that_goes_on_from_a_checkpoint_keeps_what_was_evaluated_of_it(
    tmp_path: Path,
) -> None:
    before = trained(tmp_path)
    loop, run = evaluated_loop(tmp_path)
    assert evaluations(run) == before
    loop.run_epochs(batches(8), 2)
    run.close()
    found = evaluations(nbp.open_run(tmp_path / "run.zarr"))
    assert [*found] == [3, 6, 9, 12, 15]
    assert before.items() <= found.items()


@pytest.mark.slow
def test_evaluating_the_state_of_a_checkpoint_again_gives_one_value(tmp_path: Path) -> None:
    before = trained(tmp_path)
    for _ in range(2):
        loop, run = evaluated_loop(tmp_path)
        assert loop.eval(TEST)["loss"] == pytest.approx(before[6])
        run.close()
        assert evaluations(nbp.open_run(tmp_path / "run.zarr")) == pytest.approx(before)


def test_what_is_known_of_a_state_is_in_its_checkpoint(tmp_path: Path) -> None:
    before = trained(tmp_path)
    loop, run = evaluated_loop(tmp_path)
    known = {"test_loss": before[6]}
    assert {"test_loss": loop.state_metrics()["test_loss"]} == pytest.approx(known)
    loop.save_checkpoint(tmp_path / "other")
    loop.run_steps(batches(8), 1)
    assert "test_loss" not in loop.state_metrics()
    other = a_loop()
    other.load_checkpoint(tmp_path / "other")
    assert {"test_loss": other.state_metrics()["test_loss"]} == pytest.approx(known)
    run.close()


@pytest.mark.slow
def test_a_rewound_loop_shows_what_was_evaluated_of_the_state_it_goes_on_from(
    tmp_path: Path,
) -> None:
    loop, run = evaluated_loop(tmp_path)
    loop.run_epochs(batches(8), 1)
    before = evaluations(run)
    branch = loop.rewind(6, **QUIET)
    assert branch is not None
    assert evaluations(branch) == before
    branch.attach("0", "output_norm", phase="eval")
    loop.eval(TEST)  # once more, on the branch
    assert evaluations(branch) == before
    loop.run_epochs(batches(8), 2)
    assert [*evaluations(branch)] == [3, 6, 9, 12, 15]
    branch.close()
    store = tmp_path / "run.zarr"
    assert [*evaluations(nbp.open_run(store))] == [3, 6, 9, 12, 15]
    assert evaluations(nbp.open_run(store, branch=1)) == before


def test_an_evaluation_of_ones_own_is_known_wherever_the_loops_are(tmp_path: Path) -> None:
    loop = a_loop()
    heard: list[dict[str, float]] = []
    loop.on_eval(lambda loop, metrics: heard.append(dict(metrics)))
    with loop.watch(store=tmp_path / "run.zarr", probes=None) as run:
        loop.run_steps(batches(3), 3)
        loop.evaluated({"own_score": 0.5})
        loop.save_checkpoint(tmp_path / "kept")
        assert run.series("", "own_score").step.values.tolist() == [3]
    assert loop.checkpoints[0].metrics["own_score"] == loop.last_metrics["own_score"] == 0.5
    assert heard == [{"own_score": 0.5}]
