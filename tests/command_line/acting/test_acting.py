"""Verbs that act on a training in another process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import validate

import notebook_probe as nbp
from notebook_probe.command_line.schemas import schemas
from tests.command_line.acting.training import EndlessTraining, endless_training
from tests.command_line.reading.conftest import Asked, ask, strict_json
from tests.run.programs import Programs

__all__ = ["ask"]  # a fixture

pytestmark = pytest.mark.slow


@pytest.fixture(params=["socket", "mailbox"])
def training(
    tmp_path: Path, request: pytest.FixtureRequest, programs: Programs
) -> Iterator[EndlessTraining]:
    place = tmp_path / "elsewhere.zarr"
    with endless_training(place, request.param, programs=programs) as one:
        yield one


def test_verbs_act_on_a_script_that_trains(training: EndlessTraining, ask: Asked) -> None:
    place = training.place

    def ticket(*words: str) -> dict[str, object]:
        code, out, err = ask(words[0], place, *words[1:], "--json")
        assert (code, err) == (0, ""), out
        found: dict[str, object] = strict_json(out)
        assert found["ticket"] == "applied"
        validate(found, schemas()[words[0]])
        return found

    paused = ticket("pause")
    assert paused["text"] == "paused"
    step = paused["applied_step"]
    attached = ticket("attach", "*", "output_rms", "every(2)")
    assert (attached["applied_step"], attached["text"]) == (step, "output_rms at 3 modules")
    assert ticket("set", "lr", "1e-4")["text"] == "lr 0.01 → 0.0001"
    assert ticket("step")["applied_step"] == step
    assert ticket("resume")["text"] == "resumed"
    assert "looking at" in str(ticket("look", "0")["text"])
    assert ticket("detach", "2", "output_rms")["text"] == "detached 1 probe"
    code, out, _ = ask("stop", place)
    assert code == 0
    assert out.startswith("step ")
    assert out.endswith(": stopped\n")
    assert training.last_line() == "stopped 0.0001"

    record = nbp.open_run(place)
    assert record.finished
    steps = record.series("0", "output_rms").step.values.tolist()
    assert steps[0] in (step, int(str(step)) + 1)
    assert [one.module for one in record.looks] == ["0"]
    asked = [one.text for one in record.events if one.kind == "remote"]
    assert len(asked) == 8
    assert all("asked by nbp of " in text for text in asked)


def test_a_refusal_is_the_sentence_of_a_click_and_exits_with_2(
    training: EndlessTraining, ask: Asked
) -> None:
    place = training.place
    code, out, err = ask("attach", place, "9", "output_rms")
    assert (code, out) == (2, "")
    assert err.startswith("notebook_probe: error: no module matches '9' in Sequential (3 modules)")
    code, out, err = ask("attach", place, "0", "output_rmz", "--json")
    assert (code, err) == (2, "")
    assert "output_rms" in strict_json(out)["text"], "close names"
    for words, why in (
        (("rewind", place, "3"), "keeps no states"),
        (("checkpoint", place), "saves no checkpoints"),
        (("set", place, "lr", "-1"), "a number from 0"),
        (("attach", place, "0", "output_rms", "evry(2)"), "every"),
    ):
        code, out, err = ask(*words)
        assert (code, out) == (2, "")
        assert why in err, words


def test_a_killed_training_is_told_at_once_and_started_again_it_is_reached(
    training: EndlessTraining, ask: Asked, programs: Programs
) -> None:
    assert ask("pause", training.place)[0] == 0
    training.kill()
    code, _, err = ask("resume", training.place)
    assert code == 2
    assert err.endswith("no process trains this run now\n")
    with endless_training(training.place, programs=programs) as again:
        assert ask("pause", again.place)[0] == 0


def test_a_training_that_allows_no_control_says_how_to(
    tmp_path: Path, ask: Asked, programs: Programs
) -> None:
    with endless_training(tmp_path / "private.zarr", control="0", programs=programs) as one:
        code, out, err = ask("pause", one.place)
    assert (code, out) == (2, "")
    assert "nbp.watch(..., control=True) or NOTEBOOK_PROBE_CONTROL=1" in err


def test_acting_loads_no_torch(tmp_path: Path) -> None:
    program = (
        "import sys; from notebook_probe.command_line import main; "
        f"main(['pause', {str(tmp_path)!r}]); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_the_ticket_says_how_long_the_answer_took(training: EndlessTraining, ask: Asked) -> None:
    _, out, _ = ask("resume", training.place, "--json")
    found = json.loads(out)
    assert found["seconds"] > 0
    assert found["queued_step"] <= found["applied_step"]
