"""A training that is killed loses at most what was not saved, and the same call goes on."""

import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe import experiment
from notebook_probe.experiment.saving import read_units
from notebook_probe.experiment.saving.units import newest
from notebook_probe.home import HOME
from tests.experiment.digits import BATCH, digits, params, same, weights
from tests.experiment.saving.crash import Moment, Process, owner_of, train, train_digits
from tests.experiment.saving.lives import Life, life, place_of, saved_as
from tests.train.checkpoints.kinds import same_state

SAVE: dict[str, Any] = {
    "save_metrics_freq": 2, "save_filters_freq": 9, "cache_filters_freq": 3, "cache_max_num": 2,
}  # fmt: skip
PLACES, SAVER = "notebook_probe.train.checkpoints.places", "notebook_probe.experiment.saving.saver"
TRAINER = "notebook_probe.train.trainer.trainer"

MOMENTS = {
    "before anything": Moment(TRAINER, "Trainer.train_step_accumulated", 1),
    "before a checkpoint": Moment(TRAINER, "Trainer.train_step_accumulated", 3),
    "within an epoch": Moment(TRAINER, "Trainer.train_step_accumulated", 6),
    "after a unit": Moment(SAVER, "Saver.unit", 7),
    "before rows are flushed": Moment(SAVER, "_flush", 3),
    "a file has no name yet": Moment(PLACES, "to_disk", 9),
    "a file has its name": Moment(PLACES, "sync_folder", 9),
    "the oldest is to go": Moment(PLACES, "CheckpointFolder.delete", 1),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_each_moment_of_a_kill_is_a_call_that_exists(name: str) -> None:
    owner, function = owner_of(MOMENTS[name])
    assert callable(getattr(owner, function))


def check_whole(folder: Path, until: int) -> None:
    """What is there now is what a training that was never killed has left."""
    end = until + 6  # of two checkpoints one is among the recent ones: the oldest then go
    one = life(folder / "killed", end, watched=True, **SAVE)
    whole = life(folder / "whole", end, watched=True, **SAVE)
    states = [life.loop.trainer.state_dict() for life in (one, whole)]
    assert same_state(*states)
    rows = [nbp.open_run(life.place.record).series("", "loss") for life in (one, whole)]
    assert rows[0].step.values.tolist() == list(range(end))
    np.testing.assert_array_equal(rows[0].values, rows[1].values)
    assert units(one) == units(whole)
    assert files(one) == files(whole)


def units(one: Life) -> list[tuple[int, bool]]:
    return [(unit.step, unit.saved_filters) for unit in read_units(one.place)]


def files(one: Life) -> list[str]:
    folders = (one.place.checkpoints, one.place.recent)
    return sorted(path.name.partition("-")[0] for at in folders for path in at.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["within an epoch", "a file has no name yet"], id="twice"),
        pytest.param(
            [*MOMENTS], id="everywhere", marks=[pytest.mark.crash, pytest.mark.timeout(900)]
        ),
    ],
)
def test_a_training_that_is_killed_again_and_again_is_the_one_that_never_was(
    tmp_path: Path, names: list[str]
) -> None:
    folder, place = tmp_path / "killed", place_of(tmp_path / "killed", saved_as(**SAVE))
    reached = 0
    for name in names:
        one = Process(train, folder, 100, SAVE, moment=MOMENTS[name])
        assert one.end() == -signal.SIGKILL, name
        done = reached + one.done.value
        # The last unit is counted before its save is asked for, which waits for the one before.
        saved = [k for k in range(1, done) if k % 3 == 0]
        found = newest(place)
        reached = 0 if found is None else found.step
        assert reached >= (saved[-2] if len(saved) > 1 else 0), name
        assert all(Path(unit.checkpoint).exists() for unit in read_units(place) if unit.checkpoint)
    check_whole(tmp_path, reached)


@pytest.mark.crash
@pytest.mark.timeout(900)
def test_a_training_that_is_killed_at_any_time_goes_on(tmp_path: Path) -> None:
    folder, place = tmp_path / "killed", place_of(tmp_path / "killed", saved_as(**SAVE))
    moments, reached = random.Random(5), 0
    for _ in range(25):
        one = Process(train, folder, 10**6, SAVE)
        one.wait_for(moments.randrange(25))
        one.kill()
        one.end()
        found = newest(place)
        now = 0 if found is None else found.step
        assert now >= reached
        reached = now
    check_whole(tmp_path, reached)


@pytest.mark.crash
@pytest.mark.timeout(900)
def test_the_same_call_of_train_from_params_goes_on_after_every_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, n_units = tmp_path / "home", 37
    for name, moment in MOMENTS.items():
        one = Process(train_digits, home, n_units, SAVE, moment=moment)
        assert one.end() == -signal.SIGKILL, name
    monkeypatch.setenv(HOME, str(home))
    sizes = {"num_steps": n_units, "data_params": {"func": digits, "batch_size": BATCH}}
    trainings = []
    for exp_id in ("digits", "whole"):
        save = {"do_save": True, "exp_id": exp_id, **SAVE}
        given = params(save_params=save, train_params=sizes)
        (built,) = nbp.train_from_params(**given, dont_run=True)["trainings"]
        experiment.train(trainings=(built,))
        trainings.append(built)
    killed, whole = trainings
    assert 0 < len(killed.saver.record_ids) < len(whole.saver.record_ids)
    assert same(weights(killed.model), weights(whole.model))
    rows = [nbp.open_run(one.place.record).series("", "loss") for one in trainings]
    assert rows[0].step.values.tolist() == [*range(n_units)]
    np.testing.assert_array_equal(rows[0].values, rows[1].values)
    steps = [[unit.step for unit in read_units(one.place)] for one in trainings]
    assert steps[0] == steps[1]
