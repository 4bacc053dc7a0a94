"""The public face of a run: how many names, each explained, and what a wrong one is answered."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.run.run_controls import RunControls
from tests.models import mlp


@pytest.fixture
def run(tmp_path: Path) -> nbp.Run:
    return nbp.watch(mlp(), probes=None, store=tmp_path / "run.zarr")


def public(owner: object) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]


def test_a_run_has_at_most_85_public_names(run: nbp.Run) -> None:
    assert len(public(run)) <= 85


@pytest.mark.parametrize("owner", [nbp.Run, nbp.OpenedRun, RunControls])
def test_each_method_and_property_is_explained(owner: type) -> None:
    silent = [name for name in public(owner) if not inspect.getdoc(getattr(owner, name))]
    assert not silent


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("cube", r'run\.to_xarray\("cube"\)'),
        ("catalogue", r"run\.attachable\(\)"),
        ("settle", r"run\.controls\.settle"),
        ("loop_raised", r"run\.controls\.loop_raised"),
        ("keep_lineage", r"run\.controls\.keep_lineage"),
        ("edit_rule", r"run\.controls\.edit_rule"),
        ("atach", r"close: 'attach'"),
    ],
)
def test_a_name_that_a_run_has_not_is_answered_by_the_right_one(
    run: nbp.Run, name: str, answer: str
) -> None:
    with pytest.raises(AttributeError, match=answer):
        getattr(run, name)
    assert not hasattr(run, name)


@pytest.mark.parametrize("owner", [nbp.Run, nbp.OpenedRun])
def test_an_error_of_a_call_names_the_run_and_no_class_behind_it(owner: type) -> None:
    methods = [inspect.getattr_static(owner, name) for name in public(owner)]
    names = {one.__qualname__ for one in methods if inspect.isfunction(one)}
    assert "run.to_xarray" in names
    assert {name.partition(".")[0] for name in names} == {"run"}


def test_a_call_with_too_much_names_the_run(run: nbp.Run) -> None:
    with pytest.raises(TypeError, match=r"^run\.pause\(\) takes 1 positional argument"):
        run.pause(2)  # type: ignore[call-arg]


def test_a_scalar_is_logged_by_its_name_and_value(tmp_path: Path) -> None:
    model = mlp()
    run = nbp.watch(model, probes=None, store=tmp_path / "run.zarr")
    run.log("train/loss", 0.25)
    run.log({"accuracy": 0.5}, margin=2.0)
    run.close()
    data = nbp.open_run(run.location).data
    found = {name: float(data[name].squeeze()) for name in ("train/loss", "accuracy", "margin")}
    assert found == {"train/loss": 0.25, "accuracy": 0.5, "margin": 2.0}


@pytest.mark.parametrize("given", [("loss",), (3,), ({"loss": 1.0}, 2.0), (None, 2.0)])
def test_a_name_without_a_number_is_no_scalar(given: tuple[Any, ...], tmp_path: Path) -> None:
    model = mlp()
    run = nbp.watch(model, probes=None, store=tmp_path / "run.zarr")
    with pytest.raises(nbp.QuantityError, match=r"log\(.*numbers by name .* log\('loss', loss\)"):
        run.log(*given)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("cube", r'run\.to_xarray\("cube"\)'),
        ("left", r"run\.parent"),
        ("seris", r"close: 'series'"),
    ],
)
def test_an_opened_run_answers_a_missing_name_as_well(run: nbp.Run, name: str, answer: str) -> None:
    opened = nbp.open_run(run.location)
    with pytest.raises(AttributeError, match=f"a run has no {name!r}.*{answer}"):
        getattr(opened, name)
    assert not hasattr(opened, name)


def test_a_run_is_not_opened_but_read_as_it_is(run: nbp.Run) -> None:
    with pytest.raises(TypeError, match=r"open_run\(Run\): this is a run, .*run\.location"):
        nbp.open_run(run)  # type: ignore[arg-type]
    assert nbp.open_run(run.location).location == run.location
