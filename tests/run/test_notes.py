"""What a user keeps with a run: its config, annotations, and notes of what happened."""

from __future__ import annotations

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import notebook_probe as nbp
from notebook_probe.run.begin import provenance
from notebook_probe.run.begin.provenance import git_state
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

batch = floats(5, 4)
CONFIG = {"lr": 0.1, "model": {"depth": 3, "sizes": [4, 8]}, "data": None, "on": True, "why": "ü"}


def test_a_config_is_there_live_in_the_record_and_in_plain_zarr(watch: Watch) -> None:
    run = watch(made(mlp), probes=None, config=CONFIG)
    assert run.config == CONFIG
    run.config["lr"] = 7.0
    assert run.config["lr"] == 0.1, "what is given is a dict of its own"
    run.log(loss=1.0)
    run.close()
    assert run.config == nbp.open_run(run.location).config == CONFIG
    root = json.loads((Path(run.location) / "zarr.json").read_text())["attributes"]
    assert json.loads(root["config"]) == CONFIG


def test_a_trainer_adds_its_settings_below_those_that_were_given(watch: Watch) -> None:
    run = watch(made(mlp), probes=None, config={"lr": 0.1, "sizes": (4, 8)})
    run.controls.keep_config({"lr": 0.2, "epochs": 3})
    assert run.config == {"lr": 0.1, "epochs": 3, "sizes": [4, 8]}
    assert [event for event in run.events if event.kind == "config"] == []
    run.controls.keep_config({"epochs": 4})
    (event,) = [event for event in run.events if event.kind == "config"]
    assert json.loads(event.detail) == {"lr": 0.1, "epochs": 3, "sizes": [4, 8]}


def test_numbers_of_numpy_and_torch_are_numbers(watch: Watch) -> None:
    values = {"n": np.int64(3), "x": np.float32(0.5), "y": torch.tensor(2), "pair": (1, 2)}
    run = watch(made(mlp), probes=None, config=values)
    assert run.config == {"n": 3, "x": 0.5, "y": 2, "pair": [1, 2]}
    assert watch(made(mlp), probes=None).config == {}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"a": {"b": [1, torch.float16]}},
            r"config\['a'\]\['b'\]\[1\]=torch.float16; text, finite",
        ),
        ({"lr": float("nan")}, r"config\['lr'\]=nan"),
        ({3: 1}, "config has the key 3; keys are text"),
        ([("lr", 1)], "a dict is expected"),
        ({"a": "x" * 200_000}, "at most 100000 are kept"),
    ],
)
def test_what_json_cannot_hold_is_refused_before_a_file_is_made(
    config: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        nbp.watch(made(mlp), store=tmp_path / "r.zarr", config=config)
    assert not (tmp_path / "r.zarr").exists()


def test_annotations_come_until_the_run_is_closed(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    run.annotate(purpose="first", n=1)
    run.annotate(n=2, data={"name": "digits"})
    expected = {"purpose": "first", "n": 2, "data": {"name": "digits"}}
    assert run.annotations == expected
    run.flush()
    assert nbp.open_run(run.location).annotations == expected, "published at the next flush"
    with pytest.raises(ValueError, match=r"annotations\['model'\]"):
        run.annotate(model=run)
    run.close()
    with pytest.raises(nbp.ClosedRunError):
        run.annotate(late=True)
    assert nbp.open_run(run.location).annotations == expected


@pytest.mark.slow
def test_a_record_that_goes_on_keeps_its_config_or_says_that_it_changed(tmp_path: Path) -> None:
    model = made(mlp)
    for config in (CONFIG, None, CONFIG, {"lr": 0.2}):
        with nbp.watch(model, store=tmp_path / "r", probes=None, config=config) as run:
            train(model, sgd(model), batch, range(2))
            run.log(loss=1.0)
    kept = nbp.open_run(tmp_path / "r")
    assert kept.config == {"lr": 0.2}
    (changed,) = [event for event in kept.events if event.kind == "config"]
    assert (changed.step, json.loads(changed.detail)) == (6, CONFIG)


def test_a_note_is_an_event_at_the_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    train(model, sgd(model), batch, range(3))
    run.note("data", "the second half begins", files=["b.bin"])
    run.note("aside", "tea")
    told = [(event.step, event.kind, event.text, event.detail) for event in run.events]
    assert told == [
        (3, "data", "the second half begins", '{"files": ["b.bin"]}'),
        (3, "aside", "tea", ""),
    ]
    for kind, text in (("two words", "x"), ("alert", "x"), (3, "x"), ("data", " "), ("data", None)):
        with pytest.raises(ValueError, match=r"note\("):
            run.note(kind, text)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"note\('data'\)\['model'\]"):
        run.note("data", "x", model=model)
    run.close()
    assert len(nbp.open_run(run.location).events) == 2
    assert len(run.alerts) == 0


def test_the_state_of_git_is_that_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_state() == {}
    me = ["-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / "a.py").write_text("1")
    for command in (["init", "-qb", "trunk"], ["add", "."], [*me, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], check=True)
    (tmp_path / "a.py").write_text("2")
    (tmp_path / "new.py").write_text("untracked")
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    expected = {"commit": commit, "branch": "trunk", "changed_files": 1}
    run = watch(made(mlp), probes=None)
    run.log(loss=1.0)
    assert json.loads(run.data.attrs["git"]) == expected


@pytest.mark.slow
def test_a_record_that_goes_on_keeps_what_made_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, made_by = made(mlp), iter(["4f2c", "4f2c", "9ab1", "9ab1"])
    newer = {"torch": "2.5", "pandas": "3.0"}
    monkeypatch.setattr(provenance, "git_state", lambda: {"commit": next(made_by)})
    for packages in ({"torch": "2.4"}, {"torch": "2.4"}, {"torch": "2.4"}, newer):
        monkeypatch.setattr(provenance, "package_versions", lambda now=packages: now)
        with nbp.watch(model, store=tmp_path / "r", probes=None) as run:
            run.log(loss=1.0)
            run.step()
    kept = nbp.open_run(tmp_path / "r")
    assert json.loads(kept.attrs["git"]) == {"commit": "9ab1"}
    assert json.loads(kept.attrs["packages"]) == newer
    told = [(e.step, e.text, json.loads(e.detail)) for e in kept.events if e.kind == "code"]
    old = {"git": {"commit": "4f2c"}, "packages": {"torch": "2.4"}}
    assert told == [
        (2, "continued with other git than before", old),
        (3, "continued with other packages than before", {**old, "git": {"commit": "9ab1"}}),
    ]


def test_a_package_that_is_loaded_in_addition_is_no_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    monkeypatch.setattr(provenance, "git_state", dict)
    for packages in ({"torch": "2.4"}, {"torch": "2.4", "pandas": "3.0"}):
        monkeypatch.setattr(provenance, "package_versions", lambda now=packages: now)
        with nbp.watch(model, store=tmp_path / "r", probes=None) as run:
            run.log(loss=1.0)
    kept = nbp.open_run(tmp_path / "r")
    assert json.loads(kept.attrs["packages"]) == {"torch": "2.4", "pandas": "3.0"}
    assert not [event for event in kept.events if event.kind == "code"]


def test_versions_of_what_is_loaded_stand_beside_it(watch: Watch, tmp_path: Path) -> None:
    run = watch(made(mlp), probes=None, config=CONFIG)
    run.log(loss=1.0)
    versions = json.loads(run.data.attrs["packages"])
    assert versions["torch"] == str(torch.__version__)
    assert versions["python"] == platform.python_version()
    assert versions["notebook_probe"] == nbp.__version__
    assert not {"argparse", "csv", "re", "json"} & {*versions}, "they come with Python"
    run.to_netcdf(tmp_path / "run.nc")
    with xr.open_dataset(tmp_path / "run.nc") as stored:
        assert json.loads(stored.attrs["config"]) == CONFIG
