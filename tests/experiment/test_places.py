"""Where experiments lie."""

from pathlib import Path
from typing import Any

import pytest

from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import LoadParams, SaveParams
from notebook_probe.experiment.places import ExperimentFolder

NAMES: dict[str, Any] = {
    "host": "lab", "port": 27017, "dbname": "vision", "collname": "nets", "exp_id": "first"
}  # fmt: skip


def of(**given: Any) -> ExperimentFolder:
    return ExperimentFolder.of(read(SaveParams, given, "save_params"))


def test_an_experiment_is_a_folder_below_its_server_and_collection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NOTEBOOK_PROBE_HOME", str(tmp_path))
    place, root = of(**NAMES), tmp_path / "experiments"
    assert place.folder == root / "lab:27017" / "vision" / "nets" / "first"
    assert place.record == place.folder / "record.zarr"
    assert place.checkpoints == place.folder / "checkpoints"
    assert place.recent == place.folder / "recent"
    assert of(exp_id="first").folder == root / "first"
    assert of(exp_id="first", host="lab").folder == root / "lab" / "first"


def test_checkpoints_of_two_experiments_never_share_a_folder(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    places = [of(exp_id=name, cache_dir=str(cache)) for name in ("a", "b")]
    assert [one.recent for one in places] == [cache / "a" / "recent", cache / "b" / "recent"]
    assert cache not in places[0].record.parents


def test_what_load_params_leave_out_is_as_in_save_params() -> None:
    place = of(**NAMES)
    load = read(LoadParams, {"exp_id": "second"}, "load_params")
    assert place.elsewhere(load).folder == place.folder.with_name("second")
    assert place.elsewhere(read(LoadParams, {}, "load_params")) == place


@pytest.mark.parametrize("name", ["host", "dbname", "collname", "exp_id"])
@pytest.mark.parametrize("given", ["../other", "a/b", "a\\b", "", ".", "..", " a", "a\0b", "/etc"])
def test_a_name_that_is_no_folder_is_refused(tmp_path: Path, name: str, given: str) -> None:
    wrong: dict[str, Any] = {name: given}
    unread = LoadParams.model_construct(**wrong)  # reading refuses some of these names before
    with pytest.raises(ValueError, match=name):
        of(**{"exp_id": "first", **wrong})
    with pytest.raises(ValueError, match=name):
        ExperimentFolder(tmp_path).elsewhere(unread)


def test_without_an_exp_id_there_is_no_folder() -> None:
    save = SaveParams.model_construct(exp_id=None)
    with pytest.raises(ValueError, match="exp_id is missing"):
        _ = ExperimentFolder.of(save).record
