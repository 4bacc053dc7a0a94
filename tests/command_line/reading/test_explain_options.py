"""``nbp explain`` as of a step, and against a good run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import notebook_probe as nbp
from notebook_probe.command_line.schemas import schemas
from notebook_probe.home import HOME
from notebook_probe.record import RecordWriter
from notebook_probe.record.format.source import Variable
from tests.command_line.reading.build import GONE, MODULES, PEAK, QUIET, SPIKE, build
from tests.command_line.reading.conftest import Answered, Asked

START, FACTOR, N_STEPS = 60, 20.0, 120


def compared(folder: Path, title: str, factor: float = 1.0, modules: int = 2) -> str:
    """Record gradient norms of body.0 and head, those of head with a factor from a step on."""
    names = ["body.0", "head"][:modules]
    with RecordWriter(folder / f"{title}.zarr", title=title, modules=MODULES) as writer:
        stream = writer.stream("every_1")
        stream.extend(names, [Variable("grad_norm", attrs={"needs": "grad"})])
        values = np.random.default_rng(1).uniform(1, 1.1, (N_STEPS, 2))
        values[START:, 1] *= factor
        for step in range(N_STEPS):
            stream.record(step, step, values[step, None, :modules].astype(np.float32))
    return str(folder / f"{title}.zarr")


@pytest.mark.parametrize(
    ("step", "causes", "remarks"),
    [
        (QUIET.step - 1, [], []),
        (QUIET.step, [], [QUIET.rule]),
        (PEAK, [SPIKE.rule], [QUIET.rule]),
        (GONE.step - 1, [SPIKE.rule], [QUIET.rule]),
        (GONE.step, [SPIKE.rule, GONE.rule], [QUIET.rule]),
    ],
)
def test_as_of_a_step_only_what_was_found_by_then_is_explained(
    answer: Answered, ask: Asked, known: str, step: int, causes: list[str], remarks: list[str]
) -> None:
    told = answer("explain", known, "--step", str(step))
    Draft202012Validator(schemas()["explain"]).validate(told)
    assert told["as_of"] == step
    assert [one["alert"]["rule"] for one in told["causes"]] == causes
    assert [one["rule"] for one in told["remarks"]] == remarks
    assert told["verdict"] == nbp.open_run(known).explain(step).title
    assert told["verdict"].startswith(f"{step + 1} steps: ")
    points = [
        (one["before"], one["after"]) for cause in told["causes"] for one in cause["evidence"]
    ]
    assert all(point is None or point[0] <= step for pair in points for point in pair)
    assert f"as of step {step}: {step + 1} steps: " in ask("explain", known, "--step", str(step))[1]


def test_a_rule_whose_finding_came_later_had_found_nothing_by_then(
    answer: Answered, known: str
) -> None:
    before, now = answer("explain", known, "--step", str(PEAK - 1)), answer("explain", known)
    assert SPIKE.rule in before["well"]
    assert SPIKE.rule not in now["well"]


def test_the_last_step_explains_as_the_whole_run(answer: Answered, known: str) -> None:
    whole = answer("explain", known)
    last = answer("explain", known, "--step", "399")
    assert {**last, "as_of": None} == whole


def test_a_step_that_is_not_recorded_is_an_error_in_one_line(ask: Asked, known: str) -> None:
    code, out, err = ask("explain", known, "--step", "400")
    assert (code, out) == (2, "")
    assert err == "notebook_probe: error: step=400; recorded steps are 0 to 399\n"


def test_against_a_good_run_has_module_quantity_step_and_ratio(
    answer: Answered, ask: Asked, tmp_path: Path
) -> None:
    bad, good = compared(tmp_path, "bad", FACTOR), compared(tmp_path, "good")
    told = answer("explain", bad, "--against", good)
    Draft202012Validator(schemas()["explain"]).validate(told)
    (found,) = told["against"]["differences"]
    assert (found["module"], found["quantity"]) == ("head", "grad_norm")
    assert (found["step"], found["began"]) == (START, START)
    assert found["ratio"] == pytest.approx(FACTOR, rel=1e-6)
    assert found["here"] == pytest.approx(found["there"] * FACTOR, rel=1e-6)
    assert told["against"]["good"] == ["good"]
    assert told["against"]["compared"] == ["grad_norm"]
    text = ask("explain", bad, "--against", good)[1].splitlines()
    assert text[1].startswith(f"Differs from good first at step {START}: head, grad_norm ×20")
    assert text[2].startswith(f"- step {START}: head grad_norm: ratio 20, ")


def test_a_healthy_twin_has_no_difference(answer: Answered, tmp_path: Path) -> None:
    one, other = compared(tmp_path, "one"), compared(tmp_path, "other", 1.01)
    told = answer("explain", one, "--against", other)["against"]
    assert (told["differences"], told["left_out"]) == ([], 0)
    assert told["verdict"] == f"No difference from other in grad_norm up to step {N_STEPS - 1}"


def test_as_of_a_step_before_it_a_difference_is_none(answer: Answered, tmp_path: Path) -> None:
    bad, good = compared(tmp_path, "bad", FACTOR), compared(tmp_path, "good")
    told = answer("explain", bad, "--against", good, "--step", str(START - 1))["against"]
    assert told["verdict"] == f"No difference from good up to step {START - 1}"
    assert (told["differences"], told["last_step"]) == ([], START - 1)
    later = answer("explain", bad, "--against", good, "--step", str(START))["against"]
    assert [one["step"] for one in later["differences"]] == [START]


def test_several_good_runs_are_a_pattern_or_several_options(
    answer: Answered, ask: Asked, tmp_path: Path
) -> None:
    bad = compared(tmp_path, "bad", FACTOR)
    goods = [compared(tmp_path, f"good-{i}") for i in range(3)]
    pattern = answer("explain", bad, "--against", str(tmp_path / "good-*.zarr"))["against"]
    options = [word for good in goods for word in ("--against", good)]
    assert answer("explain", bad, *options)["against"] == pattern
    assert len(pattern["good"]) == 3
    code, out, err = ask("explain", bad, "--against", str(tmp_path / "goof.zarr"))
    assert (code, out) == (2, "")
    assert "'good-0.zarr'" in err, "close names"


def test_the_text_has_at_most_40_lines_and_the_rest_is_counted(
    ask: Asked, answer: Answered, tmp_path: Path
) -> None:
    spread = [replace(GONE, rule=f"rule_{i}", step=57 * i, began=None) for i in range(7)]
    spread += [replace(SPIKE, rule=f"spike_{i}", step=57 * i, began=None) for i in range(7)]
    place = build(tmp_path / "bad.zarr", "bad", tuple(spread))
    good = build(tmp_path / "good.zarr", "good", ())
    for words in ([], ["--step", "380"], ["--against", good]):
        text = ask("explain", place, *words)[1].splitlines()
        assert len(text) <= 40
        told = answer("explain", place, *words)
        assert told["left_out"] > 0
        assert len(told["causes"]) + len(told["remarks"]) + told["left_out"] == 15
        assert any(line.startswith(f"{told['left_out']} more findings") for line in text)
        whole = answer("explain", place, *words, "--limit", "0")
        assert (len(whole["causes"]), whole["left_out"]) == (14, 0)


@pytest.mark.slow
def test_another_process_explains_against_a_run_by_its_json(tmp_path: Path) -> None:
    bad, good = compared(tmp_path, "bad", FACTOR), compared(tmp_path, "good")
    words = ["explain", bad, "--against", good, "--step", "100", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "notebook_probe", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, HOME: str(tmp_path / "home")},
    )
    (found,) = json.loads(done.stdout)["against"]["differences"]
    assert (found["module"], found["step"]) == ("head", START)
