"""Requests from elsewhere act as clicks do: over the socket, and through the mailbox."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import ProbeError, RecordWarning
from notebook_probe.record.store.files import MAILBOX
from notebook_probe.run.attach.requests import Attach, Control, LookAt, Set
from notebook_probe.run.going_back.requests import GoBack, SaveCheckpoint
from notebook_probe.run.remote_control import places
from notebook_probe.run.remote_control.asking import ask_run
from notebook_probe.run.remote_control.desk import REMOTE
from notebook_probe.run.remote_control.lines import LineError
from tests.models import floats, sgd, train_step
from tests.run.conftest import Watch
from tests.run.loops import applied, batch, held_at, training, wait_until
from tests.run.remote_control.conftest import Ask


def remote_events(run: nbp.Run) -> list[tuple[int, str]]:
    return [(one.step, one.text) for one in run.events if one.kind == REMOTE]


def check_requests(run: nbp.Run, model: nn.Module, ask: Ask, way: str) -> None:
    """Ask for one thing after the other, and compare with what a click is answered."""
    place = run.location
    with training(run, model) as loop:
        wait_until(lambda: loop.n_steps > 3)
        paused = ask(place, Control("pause"))
        assert paused.way == way
        assert paused.answer is not None
        assert (paused.answer.state, paused.answer.text) == ("applied", "paused")
        step = held_at(run)
        assert paused.answer.applied_step == step

        attached = ask(place, Attach(("0",), "output_rms", "every(2)")).answer
        assert attached is not None
        assert (attached.state, attached.applied_step) == ("applied", step)
        assert "output_rms" in {one.quantity for one in run.probes()}
        rate = ask(place, Set("lr", 0.25)).answer
        assert rate is not None
        assert rate.text.endswith("0.25")
        for request in (
            Attach(("9",), "output_rms"),
            Attach(("0",), "output_rmz"),
            Attach(("0",), "output_rms", "evry(2)"),
            Set("lrr", 1.0),
            Set("lr", -1.0),
            LookAt("9"),
            GoBack(1),
            SaveCheckpoint(),
        ):
            refused, click = ask(place, request).answer, applied(run, request)
            assert refused is not None
            assert (refused.state, refused.text) == (click.state, click.text) != ("applied", "")

        assert ask(place, Control("step")).answer is not None
        wait_until(lambda: run.status().step == step + 1)
        assert held_at(run) == step + 1, "one step, and paused again"
        ask(place, Control("resume"))
        wait_until(lambda: loop.n_steps > step + 5)
        looked = ask(place, LookAt("0")).answer
        assert looked is not None
        assert looked.state == "applied"
        ask(place, Control("stop"))
        wait_until(lambda: not loop.background.running)
    texts = [text for _, text in remote_events(run)]
    assert texts[0].startswith("pause, asked by a test")
    assert remote_events(run)[0][0] == step
    assert sum(text.startswith("refused: ") for text in texts) == 8
    details = [json.loads(one.detail) for one in run.events if one.kind == REMOTE]
    assert details[1]["request"] == {
        "do": "attach",
        "where": ["0"],
        "quantity": "output_rms",
        "schedule": "every(2)",
    }
    measured = run.series("0", "output_rms").step.values
    assert measured[0] in (step, step + 1)


@pytest.mark.slow
def test_a_socket_answers_as_a_click_does(watch: Watch, model: nn.Module, ask: Ask) -> None:
    check_requests(watch(model, probes=None, control=True), model, ask, "socket")


@pytest.mark.slow
@pytest.mark.usefixtures("only_mailbox")
def test_a_mailbox_answers_as_a_click_does(watch: Watch, model: nn.Module, ask: Ask) -> None:
    check_requests(watch(model, probes=None, control=True), model, ask, "mailbox")


@pytest.mark.parametrize("control", [None, False])
def test_without_leave_nothing_is_started_and_every_request_is_refused(
    watch: Watch, model: nn.Module, control: bool | None, ask: Ask
) -> None:
    before = {*threading.enumerate()}
    watch(nn.Linear(2, 2), probes=None).close()
    run = watch(model, probes=None, control=control)
    new = {one.name for one in {*threading.enumerate()} - before}
    assert not any("control" in name for name in new)
    assert not (Path(run.location) / MAILBOX).exists()
    run.flush()
    with pytest.raises(LineError, match=r"allows no control: start .* control=True"):
        ask(run.location, Control("pause"))
    assert not run.controls.status_head().pause_reason


def calls_of_steps(run: nbp.Run, model: nn.Module, n_steps: int) -> Counter[str]:
    """Count the calls of the training thread before and at the gate, and in control's package."""
    optimizer, seen = sgd(model), Counter[str]()
    counted = "remote_control", "gate", "step_sequence"
    for step in range(20):
        train_step(model, optimizer, batch(step))

    def count(frame: object, event: str, _: object) -> None:
        code = frame.f_code  # type: ignore[attr-defined]
        if event == "call" and any(name in code.co_filename for name in counted):
            seen[code.co_name] += 1

    sys.setprofile(count)
    try:
        for step in range(n_steps):
            train_step(model, optimizer, batch(step))
    finally:
        sys.setprofile(None)
    run.close()
    return seen


def test_a_step_calls_nothing_more_where_control_is_on(watch: Watch) -> None:
    models = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)) for _ in range(2)]
    off, on = (
        calls_of_steps(watch(one, probes=None, control=control), one, 8)
        for one, control in zip(models, (False, True), strict=True)
    )
    assert on == off
    assert on["follow_at_rest"] + on["pass_to"] >= 8, "each step looks at the gate"


def test_the_environment_allows_control_and_an_argument_decides(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEBOOK_PROBE_CONTROL", "1")
    assert (Path(watch(model).location) / MAILBOX).is_dir()
    assert not (Path(watch(model, control=False).location) / MAILBOX).exists()
    monkeypatch.setenv("NOTEBOOK_PROBE_CONTROL", "yes")
    with pytest.raises(ValueError, match="1 allows control, 0 does not"):
        watch(model)
    with pytest.raises(TypeError, match="control='on'"):
        watch(model, control="on")


def test_the_ways_in_are_gone_with_the_run(watch: Watch, model: nn.Module, ask: Ask) -> None:
    run = watch(model, probes=None, control=True)
    run.flush()
    session = json.loads((Path(run.location) / MAILBOX / "run.json").read_text())["session"]
    (path,) = (one for one in places.socket_paths(session) if one.exists())
    with training(run, model):
        assert ask(run.location, Control("resume")).answer is not None
    run.close()
    assert not path.exists()
    assert not (Path(run.location) / MAILBOX).exists()
    names = [one.name for one in threading.enumerate()]
    assert not any("notebook_probe control" in name for name in names)
    with pytest.raises(LineError, match="no process trains this run"):
        ask(run.location, Control("pause"))


def test_a_dropped_run_ends_although_it_can_be_controlled(watch: Watch, tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    run = nbp.watch(model, store=tmp_path / "dropped.zarr", probes=None, control=True)
    del run
    wait_until(lambda: nbp.open_run(tmp_path / "dropped.zarr").finished)
    assert not (tmp_path / "dropped.zarr" / MAILBOX).exists()


def test_a_request_that_waits_as_the_run_is_closed_is_refused(
    watch: Watch, model: nn.Module, ask: Ask
) -> None:
    run = watch(model, probes=None, control=True)
    train_step(model, sgd(model), batch(0))
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(ask(run.location, Set("lr", 0.1)).answer)
    )
    asking.start()
    wait_until(lambda: not run.controls._parts.gate._waiting.empty())
    run.close()
    asking.join()
    assert answers[0] is not None
    assert (answers[0].state, answers[0].text) == ("refused", "the run is closed")


def test_no_step_in_time_leaves_the_request_in_the_queue(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, control=True)
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    asked = ask_run(run.location, Set("lr", 0.125), "a test", 0.05)
    assert asked.answer is not None
    assert (asked.answer.state, asked.taken_back) == ("queued", False)
    train_step(model, optimizer, batch(1))
    assert optimizer.param_groups[0]["lr"] == 0.125


def test_a_breakpoint_holds_a_job_that_another_process_can_continue(
    watch: Watch, model: nn.Module, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    run = watch(model, probes=None, control=True)
    run.pause_when(step=3)

    def resume() -> None:
        held_at(run)
        ask(run.location, Control("resume"))

    other = threading.Thread(target=resume, daemon=True)
    other.start()
    optimizer = sgd(model)
    for step in range(5):
        train_step(model, optimizer, batch(step))
    other.join()
    assert "nbp resume" in capsys.readouterr().out
    assert any(one.kind == "pause" for one in run.events)


@pytest.mark.usefixtures("only_mailbox")
def test_a_folder_of_somebody_else_in_place_of_the_mailbox_is_left_alone(
    watch: Watch, model: nn.Module, tmp_path: Path
) -> None:
    place, elsewhere = tmp_path / "hostile.zarr", tmp_path / "elsewhere"
    watch(model, store=place).close()
    (elsewhere / "in").mkdir(parents=True)
    (elsewhere / "in" / "precious").touch()
    (place / MAILBOX).symlink_to(elsewhere)
    with pytest.raises(ProbeError, match="link"):
        watch(model, store=place, control=True)
    (place / MAILBOX).unlink()
    (place / MAILBOX).mkdir()
    (place / MAILBOX / "in").symlink_to(elsewhere / "in")
    with pytest.warns(RecordWarning, match="is not a folder of ours"):
        run = watch(model, store=place, control=True)
    train_step(model, sgd(model), batch(0))
    run.close()
    assert (elsewhere / "in" / "precious").exists()


def test_a_store_that_has_no_mailbox_trains_with_a_warning(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, key: str, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("notebook_probe.run.remote_control.mail.LocalMail.write", full)
    with pytest.warns(RecordWarning, match="no control from other processes: .*No space left"):
        run = watch(model, probes=None, control=True)
    train_step(model, sgd(model), batch(0))
    assert run.status().step == 1


def test_a_forked_child_leaves_socket_and_mailbox_to_its_parent(
    watch: Watch, model: nn.Module, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = watch(model, probes=None, control=True)
    run.flush()

    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        for callback in run.controls._parts.gate._ending.every:
            callback()
    with training(run, model):
        answer = ask(run.location, Control("resume")).answer
    assert answer is not None
    assert answer.state == "applied"


def test_weights_are_equal_bit_for_bit_while_another_process_asks(watch: Watch, ask: Ask) -> None:
    def trained(control: bool) -> list[list[float]]:
        torch.manual_seed(0)
        one = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        run, optimizer = watch(one, probes=None, control=control), sgd(one)
        for step in range(12):
            if control and step % 3 == 0:
                ask_run(run.location, Attach(("0",), "output_norm"), "a test", 0.02)
            train_step(one, optimizer, floats(5, 4)(step))
        return [value.detach().flatten().tolist() for value in one.parameters()]

    assert trained(control=True) == trained(control=False)
