"""Which units of another place are meant: every operator by hand."""

from pathlib import Path
from typing import Any

import pytest

from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import LoadParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.restoring.found import find
from tests.experiment.saving.lives import life

SAVE: dict[str, Any] = {
    "save_filters_freq": 1, "save_valid_freq": 1, "watched": True, "save_initial_filters": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Units 1 to 4 of "deep", then 1 to 3 of "flat"; one that was killed before it had any."""
    folder = tmp_path_factory.mktemp("collection")
    for name, n, depth in (("deep", 4, 8), ("flat", 3, 2)):
        config = {"model": {"depth": depth}}
        found = {"small": {"loss": depth / 2, "said": name}}
        life(folder, n, exp_id=name, config=config, validated=found, **SAVE)
    (folder / "vision" / "killed" / "record.zarr").mkdir(parents=True)
    (folder / "vision" / "notes.txt").write_text("mine")
    return folder


ANY = {"exp_id": {"$ne": ""}}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (None, "deep 4"),  # of the place that is named
        ({}, "deep 4"),
        ({"step": 2}, "deep 2"),
        ({"step": {"$lt": 3}}, "deep 2"),
        ({"step": {"$lte": 3}}, "deep 3"),
        ({"step": {"$gt": 1, "$lt": 3}}, "deep 2"),
        ({"step": {"$gte": 4}}, "deep 4"),
        ({"step": {"$ne": 4}}, "deep 3"),
        ({"step": {"$in": [1, 3, 9]}}, "deep 3"),
        ({"exp_id": "flat"}, "flat 3"),
        (ANY, "flat 3"),
        ({"exp_id": {"$in": ["deep", "killed"]}}, "deep 4"),
        ({**ANY, "step": {"$gt": 3}}, "deep 4"),
        ({**ANY, "params.model.depth": 8}, "deep 4"),
        ({**ANY, "params.model.depth": {"$lt": 8}}, "flat 3"),
        ({**ANY, "valid_small_loss": {"$gt": 1.5}}, "deep 4"),
        ({**ANY, "valid_small_said": "deep", "step": {"$lt": 2}}, "deep 1"),
        ({**ANY, "saved_filters": True}, "flat 3"),
    ],
)
def test_a_query_means_the_unit_saved_last_of_those_that_it_fits(
    collection: Path, query: dict[str, Any] | None, expected: str
) -> None:
    place = ExperimentFolder(collection, dbname="vision", exp_id="new")
    load = read(LoadParams, {"exp_id": "deep", "query": query}, "load_params")
    found = find(place, load, is_saving=True)
    assert found.place is not None
    step = int(Path(found.path).stem.removeprefix("step_"))
    assert f"{found.place.exp_id} {step}" == expected


@pytest.mark.parametrize(
    "query",
    [
        {"step": 9},
        {"step": "2"},  # text is no number
        {"params.model.depth": {"$gt": 8}},
        {"nothing": 1},
        {"nothing": {"$lt": 1}},
        {"exp_id": "killed"},
        {"exp_id": "../vision/deep"},
        {"exp_id": "notes.txt"},
    ],
)
def test_a_query_that_nothing_fits_is_an_error(collection: Path, query: dict[str, Any]) -> None:
    place = ExperimentFolder(collection, dbname="vision", exp_id="new")
    load = read(LoadParams, {"exp_id": "deep", "query": query}, "load_params")
    with pytest.raises(FileNotFoundError, match="of a unit with"):
        find(place, load, is_saving=True)


def test_an_operator_that_nobody_knows_is_an_error(collection: Path) -> None:
    place = ExperimentFolder(collection, dbname="vision", exp_id="new")
    load = read(LoadParams, {"exp_id": "deep", "query": {"step": {"$near": 3}}}, "load_params")
    with pytest.raises(ValueError, match=r"\$near"):
        find(place, load, is_saving=True)
