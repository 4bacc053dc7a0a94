"""What a summary collector is told: every argument, what it is by default, and what is refused."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.summary.settings import CollectorSettings

SWITCHES = (
    *("collect_metric", "collect_graph", "collect_train_lineage", "collect_eval_lineage"),
    *("collect_input_data", "collect_dataset_graph"),
)


def read(tmp_path: Path, **options: Any) -> CollectorSettings:
    return CollectorSettings.read(str(tmp_path / "summary"), **options)


def test_all_is_on_by_default(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert (settings.collect_freq, settings.num_process) == (10, 32)
    assert all(settings.collects(switch) for switch in SWITCHES)
    assert settings.specified["histogram_regular"] is None
    assert settings.landscape == {}
    assert (settings.collect_tensor_freq, settings.max_file_size) == (None, None)
    assert settings.tensor_format is None


def test_what_is_given_is_merged_with_the_defaults(tmp_path: Path) -> None:
    given = {"collect_graph": False, "collect_landscape": {"landscape_size": 5}}
    settings = read(tmp_path, collect_specified_data=given)
    assert not settings.collects("collect_graph")
    assert settings.collects("collect_metric")
    assert settings.landscape == {"landscape_size": 5}


def test_without_the_defaults_only_what_is_given_is_collected(tmp_path: Path) -> None:
    none = read(tmp_path, keep_default_action=False)
    one = read(tmp_path, keep_default_action=False, collect_specified_data={"collect_metric": True})
    assert dict(none.specified) == {}
    assert none.landscape is None
    assert dict(one.specified) == {"collect_metric": True}


def test_settings_are_frozen_and_no_view_of_what_was_given(tmp_path: Path) -> None:
    given, lineage = {"collect_metric": False}, {"lr": 0.1}
    settings = read(tmp_path, collect_specified_data=given, custom_lineage_data=lineage)
    given["collect_metric"], lineage["lr"] = True, 2.0
    assert not settings.collects("collect_metric")
    assert settings.custom_lineage_data == {"lr": 0.1}
    with pytest.raises(FrozenInstanceError):
        settings.collect_freq = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.specified["collect_metric"] = True  # type: ignore[index]


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("collect_freq", 0, ValueError),
        ("collect_freq", -1, ValueError),
        ("collect_freq", True, TypeError),
        ("collect_freq", 1.0, TypeError),
        ("collect_freq", None, TypeError),
        ("collect_tensor_freq", 0, ValueError),
        ("collect_tensor_freq", "5", TypeError),
        ("max_file_size", -5, ValueError),
        ("max_file_size", False, TypeError),
        ("num_process", 0, ValueError),
        ("num_process", None, TypeError),
        ("keep_default_action", 1, TypeError),
        ("unit", "batch", ValueError),
        ("collect_specified_data", [], TypeError),
        ("collect_specified_data", {1: True}, TypeError),
        ("collect_specified_data", {"collect_metric": 1}, TypeError),
        ("collect_specified_data", {"histogram_regular": 5}, TypeError),
        ("collect_specified_data", {"histogram_regular": "("}, ValueError),
        ("collect_specified_data", {"collect_landscape": True}, TypeError),
        ("custom_lineage_data", [("lr", 1)], TypeError),
        ("custom_lineage_data", {1: 1}, TypeError),
        ("custom_lineage_data", {"lr": True}, TypeError),
        ("custom_lineage_data", {"lr": [1]}, TypeError),
        ("export_options", "npy", TypeError),
        ("export_options", {}, ValueError),
        ("export_options", {"tensor_format": "csv"}, ValueError),
        ("export_options", {"tensor_format": "npy", "more": 1}, ValueError),
    ],
)
def test_what_cannot_be_is_refused_with_its_name_and_leaves_no_folder(
    tmp_path: Path, option: str, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=option):
        read(tmp_path, **{option: value})
    assert not (tmp_path / "summary").exists()


def test_an_unknown_key_names_what_comes_near(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'collect_metrics'; close: 'collect_metric'"):
        read(tmp_path, collect_specified_data={"collect_metrics": True})


def test_a_folder_is_made_and_a_file_refused(tmp_path: Path) -> None:
    settings = CollectorSettings.read(str(tmp_path / "a" / "b"))
    assert settings.summary_dir.is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file"):
        CollectorSettings.read(str(tmp_path / "file"))
    with pytest.raises(TypeError, match="summary_dir"):
        CollectorSettings.read(tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="summary_dir"):
        CollectorSettings.read(" ")


def test_the_collector_takes_the_nine_arguments_by_place(tmp_path: Path) -> None:
    collector = nbp.SummaryCollector(
        *(str(tmp_path), 5, 4, {"collect_metric": False}, False, {"lr": 1}, 7, 1000),
        {"tensor_format": "npy"},
    )
    settings = collector.settings
    assert (settings.collect_freq, settings.num_process) == (5, 4)
    assert dict(settings.specified) == {"collect_metric": False}
    assert (settings.collect_tensor_freq, settings.max_file_size) == (7, 1000)
    assert settings.tensor_format == "npy"
