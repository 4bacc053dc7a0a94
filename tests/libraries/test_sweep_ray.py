"""A sweep handed to Ray Tune."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.experiment.sweep import Configuration, choice, integers, log_uniform, uniform

ray = pytest.importorskip("ray")
pytest.importorskip("ray.tune")
by_ray: Any = pytest.importorskip("notebook_probe.experiment.sweep.ray")

pytestmark = pytest.mark.libraries


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One process beside this one; no dashboard, nothing sent."""
    ray.init(num_cpus=1, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    ray.shutdown()


def train(one: Configuration) -> dict[str, float]:
    assert Path(one.folder).is_dir()
    return {"score": one["lr"] * one["model"]["depth"] + one["model"]["width"]}


def tried(space: Any, sweep: Any, folder: Path, n: int = 1) -> list[dict[str, Any]]:
    tuner = ray.tune.Tuner(
        by_ray.trainable(train, sweep),
        param_space=space,
        tune_config=ray.tune.TuneConfig(num_samples=n),
        run_config=ray.tune.RunConfig(storage_path=str(folder), verbose=0),
    )
    return [one.metrics for one in tuner.fit()]


def variants(space: Any) -> list[dict[str, Any]]:
    """What Ray makes of a space, by itself."""
    from ray.tune.search.variant_generator import generate_variants

    return [found for _, found in generate_variants(space, random_state=0)]


def test_ray_makes_of_a_list_each_configuration_once_and_of_a_space_its_values() -> None:
    sweep = nbp.sweep({"lr": [0.1, 0.2], "model.depth": [1, 2]})
    assert [one["chosen"] for one in variants(by_ray.listed(sweep))] == [
        dict(one.chosen) for one in sweep
    ]
    assert len(variants(by_ray.param_space(sweep))) == 4
    drawn = {"lr": log_uniform(1e-3, 1), "depth": integers(1, 2), "at": uniform(2, 3)}
    (found,) = variants(by_ray.param_space(nbp.sweep(drawn, kind="random", n=1)))
    assert 1e-3 <= found["lr"] <= 1
    assert found["depth"] in (1, 2)
    assert 2 <= found["at"] <= 3


@pytest.mark.usefixtures("cluster")
def test_the_configurations_of_a_sweep_are_tried_once_each(tmp_path: Path) -> None:
    sweep = nbp.sweep({"lr": [0.1, 0.2], "model.depth": [1, 2]}, {"model": {"width": 8}})
    found = tried(by_ray.listed(sweep), sweep, tmp_path)
    scores = {one["sweep_id"]: one["score"] for one in found}
    assert scores == {one.id: pytest.approx(train_here(one)) for one in sweep}


@pytest.mark.usefixtures("cluster")
def test_a_space_is_drawn_from_by_ray(tmp_path: Path) -> None:
    space = {"lr": log_uniform(1e-3, 1), "model.depth": integers(1, 2), "other": choice("a", "b")}
    sweep = nbp.sweep(space, {"model": {"width": 8}}, kind="random", n=1)
    found = tried(by_ray.param_space(sweep), sweep, tmp_path, n=3)
    assert len({one["sweep_id"] for one in found}) == 3
    assert all(8 < one["score"] <= 10 for one in found)


def train_here(one: Configuration) -> float:
    return float(one["lr"] * one["model"]["depth"] + one["model"]["width"])
