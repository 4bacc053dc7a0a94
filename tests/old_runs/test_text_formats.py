"""CSV, JSON lines, Lightning and Hugging Face's Trainer: hand-made files, with known numbers."""

import json
import math
from pathlib import Path

import pytest

from notebook_probe.errors import RecordFormatError
from notebook_probe.old_runs import find_old_run
from notebook_probe.old_runs.formats.plain_yaml import parse_yaml
from tests.old_runs.files_of_tools import LIGHTNING, lightning, read, trainer_state, values


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_rows_of_one_step_of_a_csv_are_merged_and_empty_cells_left_out(tmp_path: Path) -> None:
    run = read(lightning(tmp_path))
    assert values(run, "train_loss") == {4: 2.5, 9: 1.5, 14: 0.5}
    assert values(run, "val_loss") == {9: 2.25}
    assert values(run, "lr-SGD") == {9: 0.1}
    assert values(run, "epoch") == {4: 0, 9: 0, 14: 1}


def test_the_settings_next_to_a_csv_of_lightning_are_read(tmp_path: Path) -> None:
    run = read(lightning(tmp_path))
    assert run.config == {"batch_size": 8, "net": {"depth": 3, "act": "relu"}}
    assert (run.tool, run.name, run.remarks) == ("Lightning", "version_0", ())


def test_a_tag_in_yaml_is_left_out_and_never_run(tmp_path: Path) -> None:
    place = lightning(tmp_path)
    odd = "!!python/object/apply:os.system ['touch ran']"
    written(place / "hparams.yaml", f"lr: 0.1\nfn: {odd}\nmodel:\n  net: &a {odd}\n  depth: 3\n")
    run = read(place)
    assert run.config == {"lr": 0.1, "model": {"depth": 3}}
    assert run.remarks == ("hparams.yaml is read without fn, model.net: only plain values are",)


@pytest.mark.parametrize(
    ("text", "expected", "left_out"),
    [
        ("a: 'x: y'\nb: \"2\"\nc: 2 # two\nd: -1e-3\ne:\n", "x: y|2|2|-0.001|None", []),
        ("a:\n- 1\n- x\nb:\n  - true\n  - null\n", "[1, 'x']|[True, None]", []),
        ("a: [1, 2]\nb: {x: 1}\nc: 1\n", "1", ["a", "b"]),
        ("a: |\n  two\n  lines\nb: 1\n", "1", ["a"]),
        ("a:\n- b: 1\n  c: 2\n- 3\nd: 4\n", "[3]|4", ["a"]),
        ("just text\n", "", ["just text"]),
        ("a: one\n  two\nb: 1\n", "one|1", ["a"]),
    ],
)
def test_plain_yaml_is_read_and_more_is_named(
    text: str, expected: str, left_out: list[str]
) -> None:
    found, names = parse_yaml(text)
    assert "|".join(map(str, found.values())) == expected
    assert names == left_out


def test_a_csv_of_any_trainer_has_its_steps_by_name(tmp_path: Path) -> None:
    text = "\ufeff epoch ; loss; note;val_acc\n0; 2.5;slow; 0.5\n1; nan;; inf\n"
    run = read(written(tmp_path / "log.csv", text))
    assert values(run, "loss")[0] == 2.5
    assert math.isnan(values(run, "loss")[1])
    assert values(run, "val_acc") == {0: 0.5, 1: math.inf}
    assert [one.name for one in run.series] == ["loss", "val_acc"]


def test_wall_times_of_a_csv_are_times_and_elapsed_seconds_a_number(tmp_path: Path) -> None:
    dated = read(written(tmp_path / "a.csv", "Wall time,Step,Value\n1700000000.5,7,0.25\n"))
    assert values(dated, "Value") == {7: 0.25}
    assert dated.series[0].times_ms.tolist() == [1_700_000_000_500]
    elapsed = read(written(tmp_path / "b.csv", "step,time,loss\n0,12.5,1\n"))
    assert values(elapsed, "logged_time") == {0: 12.5}


def test_a_csv_without_steps_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RecordFormatError, match=r"'length', 'width' counts steps; one of _step,"):
        find_old_run(written(tmp_path / "iris.csv", "length,width\n1,2\n"))
    place = tmp_path / "version_0"
    place.mkdir()
    written(place / "metrics.csv", "loss,acc\n1,2\n")
    with pytest.raises(RecordFormatError, match=r"'loss', 'acc' counts steps; one of _step, step"):
        read(place)


def test_json_lines_may_begin_with_the_settings(tmp_path: Path) -> None:
    rows = [{"lr": 0.1}, {"step": 0, "loss": 2.0, "opt": {"lr": 0.1}}, {"step": 5, "loss": "NaN"}]
    run = read(written(tmp_path / "log.jsonl", "\n".join(map(json.dumps, rows)) + "\n"))
    assert run.config == {"lr": 0.1}
    assert values(run, "opt/lr") == {0: 0.1}
    assert math.isnan(values(run, "loss")[5])


def test_json_lines_without_steps_are_no_run(tmp_path: Path) -> None:
    with pytest.raises(RecordFormatError, match=r"no number at a step is in its first lines"):
        find_old_run(written(tmp_path / "data.jsonl", '{"text": "a"}\n{"text": "b"}\n'))


def test_a_trainer_s_numbers_stand_at_their_updates_and_evaluations_at_their_states(
    tmp_path: Path,
) -> None:
    run = read(trainer_state(tmp_path))
    assert values(run, "loss") == {9: 0.2, 19: 0.1, 29: pytest.approx(2 / 30)}
    assert values(run, "eval_loss") == {10: 0.3, 20: 0.15, 30: 0.1}
    assert run.config == {"train_batch_size": 8, "max_steps": 30}
    assert run.notes["train"] == {"train_loss": 0.1, "train_runtime": 9.0}
    assert (run.name, run.has_ended) == (tmp_path.name, True)


def test_of_a_trainer_s_folder_the_newest_checkpoint_is_read(tmp_path: Path) -> None:
    trainer_state(tmp_path, 10)
    trainer_state(tmp_path, 20)
    run = read(tmp_path)
    assert [*values(run, "loss")] == [9, 19]
    assert run.has_ended is False


def test_the_last_of_equal_steps_counts_and_steps_are_sorted(tmp_path: Path) -> None:
    run = read(written(tmp_path / "a.csv", "step,loss\n5,1\n3,2\n5,3\n-1,4\n"))
    assert values(run, "loss") == {3: 2, 5: 3}
    assert run.remarks == (
        "1 numbers are left out: their step is negative or too large, or their name cannot be "
        "printed",
    )


def test_the_example_of_lightning_is_as_it_writes_it() -> None:
    assert len({line.count(",") for line in LIGHTNING.splitlines()}) == 1
