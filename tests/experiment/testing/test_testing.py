"""A model that was trained from parameters is found again and tested, by parameters."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import CheckpointError, ParamError, UnknownNameError
from notebook_probe.experiment import test as run_tests
from notebook_probe.experiment import test_from_params as from_params
from notebook_probe.experiment import train_from_params
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.saving import read_units
from notebook_probe.experiment.validation import mean_dict
from notebook_probe.home import home

WAS_TOLD: list[dict[str, Any]] = []


def batches(batch_size: int, n: int = 6) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(2)
    return [
        {
            "x": torch.randn(batch_size, 3, generator=generator),
            "labels": torch.randint(0, 2, (batch_size,), generator=generator),
        }
        for _ in range(n)
    ]


def net(width: int, seed: int, train: bool, cfg: Any = None) -> tuple[nn.Module, dict[str, Any]]:
    WAS_TOLD.append({"width": width, "seed": seed, "train": train, "cfg": cfg})
    model = nn.Sequential(nn.Linear(3, width), nn.Dropout(), nn.Linear(width, 2))
    return model, {"activation": "none"}


def right(inputs: dict[str, Tensor], output: Tensor, scale: float = 1.0) -> dict[str, Any]:
    hits = (output.argmax(1) == inputs["labels"]).float()
    return {"right": scale * hits, "logits": output}


MODEL = {"func": net, "width": 4}
DATA = {"func": batches, "batch_size": 4}
BY = {
    "held_out": {"data_params": DATA, "targets": {"func": right}, "agg_func": mean_dict},
    "loss": {"data_params": DATA, "num_steps": 2, "agg_func": mean_dict},
}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """An experiment of nine units, with checkpoints of 0, 4 and 8: its home, and its units."""
    place = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOTEBOOK_PROBE_HOME", str(place))
        found = train_from_params(
            save_params={"exp_id": "first", "save_filters_freq": 4, "save_metrics_freq": 1},
            model_params={**MODEL, "seed": 11},
            train_params={"data_params": DATA, "num_steps": 9},
            learning_rate_params={"learning_rate": 0.1},
            skip_check=True,
        )
    return place, found.ids["model_0"]


@pytest.fixture
def trained(experiment: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the units of the experiment, in whose home the test is."""
    monkeypatch.setenv("NOTEBOOK_PROBE_HOME", str(experiment[0]))
    return experiment[1]


def outcome(load: dict[str, Any], **options: Any) -> Any:
    given = {"validation_params": BY, "skip_check": True, **options}
    return from_params({"exp_id": "first", **load}, given.pop("model_params", MODEL), **given)


def checkpoint(step: int) -> str:
    place = ExperimentFolder(home() / "experiments", exp_id="first")
    return next(one.checkpoint for one in read_units(place) if one.step == step)


def by_hand(step: int) -> dict[str, float]:
    """The same, of weights that are read from the file."""
    model, _ = net(4, 0, False)
    state = torch.load(checkpoint(step), weights_only=True)
    model.load_state_dict(state["trainer"]["model"])
    model.eval()
    with torch.no_grad():
        found = [right(batch, model(batch["x"])) for batch in batches(4)]
    return {
        key: float(np.mean([one[key].double().numpy() for one in found]))
        for key in ("right", "logits")
    }


@pytest.mark.slow
def test_the_newest_is_tested_by_every_validation(trained: list[str]) -> None:
    results, ids = outcome({})
    assert results["model_0"]["held_out"] == pytest.approx(by_hand(8), rel=1e-12)
    assert results["model_0"]["loss"]["loss"] > 0  # cross entropy, as in a training
    assert ids == {"model_0": []}  # nothing is written


def test_a_query_chooses_among_what_was_saved(trained: list[str]) -> None:
    results, _ = outcome({"query": {"step": {"$lt": 8}}})
    assert results["model_0"]["held_out"] == pytest.approx(by_hand(4), rel=1e-12)


def test_a_file_can_be_named(trained: list[str]) -> None:
    results, _ = outcome({"from_ckpt": checkpoint(0)})
    assert results["model_0"]["held_out"] == pytest.approx(by_hand(0), rel=1e-12)


def test_the_function_gets_the_seed_and_cfg_of_the_training(trained: list[str]) -> None:
    WAS_TOLD.clear()
    outcome({})
    assert WAS_TOLD == [{"width": 4, "seed": 11, "train": False, "cfg": {"activation": "none"}}]


@pytest.mark.slow
def test_one_record_says_what_was_tested_and_what_came_of_it(trained: list[str]) -> None:
    results, ids = outcome({}, save_params={"exp_id": "first", "save_to_gfs": "logits"})
    folder = home() / "experiments" / "first" / "tests" / "0"
    run = nbp.open_run(folder / "record.zarr")
    assert ids == {"model_0": [run.attrs["run_id"]]}
    config = run.config
    assert config["validates"] == next(one for one in trained if one.endswith(":8"))
    assert (config["step"], config["model"]["width"]) == (8, 4)
    assert config["load"]["exp_id"] == "first"
    found = run.series("", "valid_held_out_right")
    assert found.step.values.tolist() == [8]
    assert found.values[0] == pytest.approx(results["model_0"]["held_out"]["right"], rel=1e-6)
    outcome({}, save_params={"exp_id": "first"})
    assert (folder.parent / "1" / "record.zarr").exists()
    place = ExperimentFolder(home() / "experiments", exp_id="first")
    assert [unit.id for unit in read_units(place)] == trained  # a test is no unit


def test_do_save_false_writes_nothing(trained: list[str]) -> None:
    _, ids = outcome({}, save_params={"exp_id": "nowhere", "do_save": False})
    assert ids == {"model_0": []}
    assert not (home() / "experiments" / "nowhere").exists()


@pytest.mark.parametrize(("every", "kept"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4]), (9, [0])])
def test_results_of_single_batches_become_records(
    trained: list[str], every: int, kept: list[int]
) -> None:
    exp_id = f"every_{every}"
    results, _ = outcome(
        {"exp_id": "first"},
        validation_params={"held_out": BY["held_out"]},
        save_params={"exp_id": exp_id, "save_intermediate_freq": every, "save_to_gfs": "logits"},
    )
    folder = home() / "experiments" / exp_id / "tests" / "0"
    run = nbp.open_run(folder / "held_out.zarr")
    run_id = run.attrs["run_id"]
    summary = results["model_0"]["held_out"]
    assert summary["intermediate_steps"] == [f"{run_id}:{i}" for i in kept]
    assert run.config["batches_of"] == "held_out"
    assert run.config["validates"] == trained[-2]
    rights = run.series("", "valid_held_out_right")
    assert rights.step.values.tolist() == kept
    logits = run.series("", "valid_held_out_logits")
    assert logits.step.values.tolist() == kept
    assert logits.shape[1:] == (4, 2)
    events = nbp.open_run(folder / "record.zarr").events
    noted = [json.loads(event.detail) for event in events if event.kind == "results"]
    assert noted[0]["results"]["valid_held_out_intermediate_steps"] == summary["intermediate_steps"]


def test_what_was_built_can_be_looked_at_and_run_later(trained: list[str]) -> None:
    built = outcome({}, dont_run=True)
    [one] = built["loaded"]
    assert (one.prefix, one.step, one.record_id) == ("model_0", 8, trained[-2])
    assert isinstance(one.model, nn.Sequential)
    results, _ = run_tests(**built)
    assert results["model_0"]["held_out"] == outcome({})[0]["model_0"]["held_out"]


@pytest.mark.slow
def test_several_models_are_tested_each_by_its_own(trained: list[str]) -> None:
    results, ids = from_params(
        [{"exp_id": "first", "query": {"step": 4}}, {"exp_id": "first", "query": {"step": 8}}],
        [{**MODEL, "prefix": "early"}, {**MODEL, "prefix": "late"}],
        BY,
        save_params={"exp_id": "both"},
        skip_check=True,
    )
    for prefix, step in (("early", 4), ("late", 8)):
        assert results[prefix]["held_out"] == pytest.approx(by_hand(step), rel=1e-12)
    assert len({*ids["early"], *ids["late"]}) == 2


def test_a_part_can_be_tested_in_another_model(trained: list[str], caplog: Any) -> None:
    def other(seed: int) -> nn.Module:
        return nn.Sequential(nn.Linear(3, 4), nn.Identity(), nn.Linear(4, 2), nn.Linear(2, 2))

    built = outcome({"to_restore": ["0.weight"]}, model_params={"func": other}, dont_run=True)
    state = torch.load(checkpoint(8), weights_only=True)["trainer"]["model"]
    own = built["loaded"][0].model.state_dict()
    assert torch.equal(own["0.weight"], state["0.weight"])
    assert not torch.equal(own["2.weight"], state["2.weight"])


def test_what_does_not_fit_is_an_error(trained: list[str]) -> None:
    with pytest.raises(CheckpointError, match="weight"):
        outcome({}, model_params={**MODEL, "width": 5})


def test_the_generators_of_the_process_do_not_matter(trained: list[str]) -> None:
    torch.manual_seed(1)
    first = outcome({})[0]
    torch.manual_seed(2)
    assert outcome({})[0] == first


@pytest.mark.parametrize(
    "load", [{"exp_id": "second"}, {"query": {"step": 5}}, {"from_ckpt": "/nowhere/9.pt"}]
)
def test_what_is_not_there_is_an_error(trained: list[str], load: dict[str, Any]) -> None:
    with pytest.raises(FileNotFoundError):
        outcome(load)


def test_what_cannot_be_is_told_before_anything_is_loaded(trained: list[str]) -> None:
    with pytest.raises(UnknownNameError, match="exp_id"):
        from_params({"expid": "first"}, MODEL, BY)
    with pytest.raises(ParamError, match="do_restore"):
        outcome({"do_restore": False})
    with pytest.raises(ParamError, match="one validation at least"):
        outcome({}, validation_params={})
    with pytest.raises(ParamError, match="dont_run=1"):
        outcome({}, dont_run=1)
    with pytest.raises(ParamError, match="more than once"):
        from_params({"exp_id": "first"}, [{**MODEL, "prefix": "a"}] * 2, BY)


def test_the_dicts_are_not_changed(trained: list[str]) -> None:
    load, model = {"exp_id": "first"}, dict(MODEL)
    by = {name: dict(one) for name, one in BY.items()}
    from_params(load, model, by, skip_check=True)
    assert (load, model) == ({"exp_id": "first"}, MODEL)
    assert by == BY


def test_a_name_of_a_validation_can_be_any_text(trained: list[str], tmp_path: Path) -> None:
    outcome(
        {},
        validation_params={"a/b": BY["loss"]},
        save_params={"exp_id": "odd", "save_intermediate_freq": 1},
    )
    assert (home() / "experiments" / "odd" / "tests" / "0" / "a%2Fb.zarr").exists()
