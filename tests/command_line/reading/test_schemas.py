"""``nbp schema`` describes what the verbs print, and ``nbp skill`` names them all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from notebook_probe.command_line.main import COMMANDS
from notebook_probe.command_line.schemas import schemas
from notebook_probe.command_line.skill import SKILL
from notebook_probe.record import RecordWriter
from tests.command_line.reading.build import build
from tests.command_line.reading.conftest import Answered, Asked, strict_json

OF_RUN: dict[str, list[str]] = {
    "explain": [],
    "alerts": [],
    "output": [],
    "series": ["*", "*"],
    "tree": [],
    "plot": ["*", "*", "--ascii"],
    "show": [],
}


def check(verb: str, value: Any) -> None:
    Draft202012Validator(schemas()[verb]).validate(value)


def test_schemas_are_valid_and_closed(ask: Asked) -> None:
    for schema in schemas().values():
        Draft202012Validator.check_schema(schema)
    assert strict_json(ask("schema")[1]) == json.loads(json.dumps(schemas()))
    assert strict_json(ask("schema", "series")[1])["title"] == "nbp series --json"
    follow = Draft202012Validator(schemas()["follow"])
    assert follow.is_valid({"kind": "progress", "steps": 2, "loss": "nan"})
    assert not follow.is_valid({"kind": "progress", "steps": "two", "loss": None})
    assert not follow.is_valid({"kind": "progress", "steps": 2, "loss": None, "more": 1})


@pytest.mark.parametrize("verb", OF_RUN)
def test_the_output_of_a_verb_meets_its_schema(answer: Answered, known: str, verb: str) -> None:
    check(verb, answer(verb, known, *OF_RUN[verb]))


def test_the_outputs_of_an_empty_run_do_too(answer: Answered, tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "empty.zarr", title="empty", modules=[]):
        pass
    for verb in ("explain", "alerts", "tree", "show", "quantities"):
        check(verb, answer(verb, str(tmp_path / "empty.zarr")))


def test_quantities_do_too(answer: Answered, known: str) -> None:
    check("quantities", answer("quantities", known))
    check("quantities", answer("quantities", "norm", known, "--limit", "0"))


def test_lines_of_follow_do_too(ask: Asked, known: str) -> None:
    for line in ask("follow", known)[1].splitlines():
        check("follow", strict_json(line))


def test_tables_and_comparisons_do_too(answer: Answered, known: str, tmp_path: Path) -> None:
    place = build(tmp_path / "fine.zarr", "fine", (), scale=9)
    check("runs", answer("runs", "--root", str(tmp_path)))
    compared = answer("compare", place, known)
    check("compare", compared)
    (parted,) = compared["parting"]["modules"]
    assert (parted["module"], parted["step"], parted["there"]) == ("head", 0, "÷9.0")
    assert parted["there_factor"] == pytest.approx(1 / 9, rel=1e-6)
    assert compared["parting"]["factor"] == 2.0


def test_a_wrong_verb_has_close_ones(ask: Asked) -> None:
    code, out, err = ask("schema", "sries")
    assert (code, out) == (2, "")
    assert "no schema of 'sries'; close: 'series'" in err


def test_the_skill_names_every_verb_that_reads_and_no_unknown_one(ask: Asked) -> None:
    code, out, _ = ask("skill")
    assert (code, out) == (0, SKILL.read_text(encoding="utf-8"))
    named = {*re.findall(r"`nbp ([\w-]+)", out)}
    assert named <= {*COMMANDS}
    assert named >= {"explain", "series", "tree", "quantities", "alerts", "follow", "plot", "runs"}
    assert out.startswith("---\nname: notebook-probe\ndescription: ")
