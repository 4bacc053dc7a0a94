"""``nbp quantities``: what is recorded, and what could be attached."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from notebook_probe.command_line.reading.printing import tokens
from notebook_probe.quantities import quantities
from notebook_probe.record import RecordWriter
from tests.command_line.reading.conftest import Answered, Asked
from tests.record.build import BINS, COUNTS, new_writer, vectors


def test_quantities_of_a_run_are_those_that_are_recorded(answer: Answered, known: str) -> None:
    told = answer("quantities", known)
    assert told["attachable"] is None
    assert told["recorded"] == [
        {
            "name": "grad_norm",
            "units": "1",
            "long_name": "Size of the gradient",
            "schedules": ["every_1"],
            "modules": 2,
            "rows": 400,
            "last_step": 399,
            "is_vector": False,
        },
        {
            "name": "loss",
            "units": "nat",
            "long_name": "logged by the training loop",
            "schedules": ["loop"],
            "modules": 1,
            "rows": 400,
            "last_step": 399,
            "is_vector": False,
        },
        {
            "name": "weight_norm",
            "units": "1",
            "long_name": "Size of the weight",
            "schedules": ["every_100"],
            "modules": 1,
            "rows": 4,
            "last_step": 300,
            "is_vector": False,
        },
    ]


def test_a_word_finds_what_could_be_attached(answer: Answered, known: str) -> None:
    told = answer("quantities", "rank")
    found = {one["name"]: one for one in told["attachable"]}
    assert told["recorded"] is None
    assert found["effective_rank"]["summary"] == quantities["effective_rank"].summary
    assert found["effective_rank"]["needs"] == ["output"]
    both = answer("quantities", "weight_norm", known)
    assert [one["name"] for one in both["recorded"]] == ["weight_norm"]
    assert "weight_norm" in [one["name"] for one in both["attachable"]]


def test_without_a_word_every_quantity_can_be_had(answer: Answered, ask: Asked) -> None:
    told = answer("quantities", "--limit", "0")["attachable"]
    assert {one["name"] for one in told} >= {quantities[name].name for name in [*quantities][:50]}
    _, out, _ = ask("quantities")
    assert tokens(out) <= 2100
    assert out.splitlines()[-1].endswith("more quantities; --limit 0 prints all")


def test_a_word_that_nothing_has_is_an_error_with_close_names(ask: Asked, known: str) -> None:
    code, out, err = ask("quantities", "grad_nrm", known)
    assert (code, out) == (2, "")
    assert "no quantity is about 'grad_nrm'; close: 'grad_norm'" in err
    assert "a word and a run" in ask("quantities", "a", "b", "c")[2]


def test_vectors_are_listed_and_refused_as_series(
    answer: Answered, ask: Asked, tmp_path: Path
) -> None:
    with new_writer(tmp_path / "hist.zarr") as writer:
        stream = writer.stream("every_1", axis=BINS)
        stream.extend(["fc"], [COUNTS])
        stream.record(0, 0, vectors(stream, 0))
    (told,) = answer("quantities", str(tmp_path / "hist.zarr"))["recorded"]
    assert (told["name"], told["is_vector"], told["modules"]) == (COUNTS.name, True, BINS.size)
    code, _, err = ask("series", str(tmp_path / "hist.zarr"), "fc", COUNTS.name)
    assert (code, "is a vector at each step" in err) == (2, True)


def test_what_is_never_measured_counts_for_no_module(answer: Answered, tmp_path: Path) -> None:
    from notebook_probe.record.format.source import Variable

    with RecordWriter(tmp_path / "gaps.zarr", title="gaps", modules=[]) as writer:
        stream = writer.stream("every_1")
        stream.extend(["a", "b"], [Variable("x")])
        stream.record(0, 0, np.array([[1.0, np.nan]], np.float32))
    (told,) = answer("quantities", str(tmp_path / "gaps.zarr"))["recorded"]
    assert told["modules"] == 1
