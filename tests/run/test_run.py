"""The public face of a run: how many names, each explained, and what a wrong one is answered."""

from __future__ import annotations

import inspect
from pathlib import Path

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


@pytest.mark.parametrize("owner", [nbp.Run, RunControls])
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


def test_a_run_is_not_opened_but_read_as_it_is(run: nbp.Run) -> None:
    with pytest.raises(TypeError, match=r"open_run\(Run\): this is a run, .*run\.location"):
        nbp.open_run(run)  # type: ignore[arg-type]
    assert nbp.open_run(run.location).location == run.location
