"""A record's row, read off its commit record."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import notebook_probe as nbp
from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.documents.best import is_better
from notebook_probe.errors import RecordFormatError
from notebook_probe.lineage.row import row_of
from notebook_probe.record.format.summary import SUMMARY
from tests.catalogues.build import evaluate, log, recorded, writing


def test_it_says_what_the_lineage_of_the_run_says(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    store = tmp_path / "r.zarr"
    with nbp.watch(model, optimizer, store=store, config={"lr": 0.1, "net": {"deep": [1]}}) as run:
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(torch.ones(3, 2)).square().mean()
            loss.backward()
            optimizer.step()
            run.log({"loss": loss})
        run.log({"accuracy": 0.25}, phase="eval")
    slow, fast = row_of(nbp.open_run(store)), read_document(store).row
    assert {*slow} <= {*fast}
    for name, value in slow.items():
        expected = pytest.approx(value, rel=1e-6) if isinstance(value, float) else value
        assert fast[name] == expected, name


def test_numbers_are_first_last_least_most_and_best(tmp_path: Path) -> None:
    with writing(tmp_path / "r.zarr", [4.0, 1.0, 2.0]) as writer:
        for state, accuracy in ((1, 0.5), (2, 0.9), (3, 0.7)):
            evaluate(writer, state, accuracy)
    row = read_document(tmp_path / "r.zarr").row
    assert [row[f"{what}.loss"] for what in ("first", "last", "min", "max", "best")] == [
        4,
        2,
        1,
        4,
        1,
    ]
    told = [row[f"{what}.eval_accuracy"] for what in ("first", "last", "min", "max", "best")]
    assert told == [0.5, 0.7, 0.5, 0.9, 0.9]
    assert row["eval.accuracy"] == 0.7


def test_the_loss_of_an_evaluation_is_not_that_of_the_steps(tmp_path: Path) -> None:
    with writing(tmp_path / "r.zarr", [4.0]) as writer:
        evaluate(writer, 1, 9.0, "loss")
    row = read_document(tmp_path / "r.zarr").row
    assert (row["last.loss"], row["last.eval_loss"]) == (4.0, 9.0)


def test_of_a_diverged_run_the_last_is_nan_and_the_best_is_finite(tmp_path: Path) -> None:
    recorded(tmp_path / "r.zarr", [1.0, math.nan])
    row = read_document(tmp_path / "r.zarr").row
    assert math.isnan(row["last.loss"])
    assert row["best.loss"] == 1.0


def test_a_record_without_a_summary_is_read_from_its_rows(tmp_path: Path) -> None:
    place = recorded(tmp_path / "r.zarr", [3.0, 2.0])
    whole = read_document(place).row
    root = json.loads((place / "zarr.json").read_text())
    del root["attributes"][SUMMARY]
    (place / "zarr.json").write_text(json.dumps(root))
    assert read_document(place).row == {**whole, "size_bytes": 0}


def test_alerts_are_counted_by_rule_and_checkpoints_too(tmp_path: Path) -> None:
    with writing(tmp_path / "r.zarr") as writer:
        for rule in ("dead_units", "dead_units", "diverging_loss"):
            writer.event(1, "alert", "!", json.dumps({"rule": rule}))
        writer.event(1, "checkpoint", "saved")
    row = read_document(tmp_path / "r.zarr").row
    told = [row[name] for name in ("alerts", "alerts.dead_units", "alerts.diverging_loss")]
    assert [*told, row["checkpoints"]] == [3, 2, 1, 1]


def test_a_packed_record_is_read_as_it_is(tmp_path: Path) -> None:
    place = recorded(tmp_path / "r.zarr", lr=0.5)
    packed = nbp.open_run(place).pack(tmp_path / "r.zip")
    assert read_document(packed).row["config.lr"] == 0.5
    assert read_document(packed).row["run_id"] == read_document(place).row["run_id"]


def test_a_run_is_running_while_its_lock_is_held_and_finished_when_closed(tmp_path: Path) -> None:
    with writing(tmp_path / "r.zarr") as writer:
        assert writer.flush()
        assert read_document(tmp_path / "r.zarr").row["state"] == "running"
        log(writer, [0.1])
    assert read_document(tmp_path / "r.zarr").row["state"] == "finished"


@given(damage=st.binary(max_size=40) | st.sampled_from([b"{}", b"[]", b'{"attributes": 3}']))
def test_what_is_no_record_is_refused_in_one_way(
    tmp_path_factory: pytest.TempPathFactory, damage: bytes
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "zarr.json").write_bytes(damage)
    with pytest.raises(RecordFormatError):
        read_document(folder)


def test_a_place_without_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises((RecordFormatError, FileNotFoundError)):
        read_document(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "better"),
    [
        *((name, "min") for name in ("loss", "train/loss", "top_loss", "perplexity")),
        *((name, "max") for name in ("eval_accuracy", "val_F1", "reward")),
        *((name, "") for name in ("lr", "x")),
    ],
)
def test_what_is_better_is_told_by_the_name_or_not_at_all(name: str, better: str) -> None:
    assert is_better(name) == better
