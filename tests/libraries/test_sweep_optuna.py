"""A sweep handed to Optuna."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.experiment.sweep import Configuration, integers, log_uniform

optuna = pytest.importorskip("optuna")
by_optuna: Any = pytest.importorskip("notebook_probe.experiment.sweep.optuna")

pytestmark = pytest.mark.libraries

SPACE = {"lr": log_uniform(1e-4, 1e-1), "model.depth": integers(1, 4), "sizes": [[4], [8, 8]]}
BASE = {"model": {"width": 8}}


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def study() -> Any:
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))


def test_each_trial_is_a_configuration_within_the_space(tmp_path: Path) -> None:
    met: list[Configuration] = []

    def train(one: Configuration) -> dict[str, float]:
        met.append(one)
        assert Path(one.folder).is_dir()
        return {"loss": abs(one["lr"] - 0.01) + one["model"]["depth"]}

    sweep = nbp.sweep(SPACE, BASE, kind="random", n=3)
    found = study()
    found.optimize(by_optuna.objective(train, sweep, "loss", tmp_path), n_trials=20)
    assert len(met) == 20
    for one in met:
        assert 1e-4 <= one["lr"] <= 1e-1
        assert one["model"]["depth"] in (1, 2, 3, 4)
        assert one["model"]["width"] == 8
        assert one["sizes"] in ([4], [8, 8])
    best = min(met, key=lambda one: abs(one["lr"] - 0.01) + one["model"]["depth"])
    assert found.best_trial.user_attrs["sweep_id"] == best.id


def test_the_configurations_of_a_sweep_are_tried_first(tmp_path: Path) -> None:
    sweep = nbp.sweep(SPACE, BASE, kind="random", n=4, seed=1)
    met: list[str] = []

    def train(one: Configuration) -> float:
        met.append(one.id)
        return float(one["lr"])

    found = study()
    by_optuna.enqueue(found, sweep)
    found.optimize(by_optuna.objective(train, sweep, folder=tmp_path), n_trials=6)
    assert met[:4] == [one.id for one in sweep]
    assert not {*met[4:]} & {*met[:4]}
