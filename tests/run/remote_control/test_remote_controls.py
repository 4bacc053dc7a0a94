"""Controls of a run elsewhere: what a panel asks is what the run itself says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import UnknownNameError
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.run.attach.requests import Attach, Control, EditRule, Request, Set, Ticket
from notebook_probe.run.breakpoints.conditions import AtStep
from notebook_probe.run.breakpoints.requests import AddBreakpoint
from notebook_probe.run.remote_control import remote_controls
from notebook_probe.run.remote_control.remote_controls import RemoteControls
from tests.run.conftest import Watch
from tests.run.loops import Training, held_at, training, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(params=["socket", "mailbox"])
def run(watch: Watch, model: nn.Module, request: pytest.FixtureRequest) -> nbp.Run:
    """A run that can be controlled, over each of the ways."""
    if request.param == "mailbox":
        request.getfixturevalue("only_mailbox")
    run = watch(model, probes={"0": ["output_norm"]}, control=True)
    run.flush()
    return run


@pytest.fixture
def loop(run: nbp.Run, model: nn.Module) -> Iterator[Training]:
    with training(run, model) as one:
        yield one


def reached(run: nbp.Run) -> RemoteControls:
    opened = nbp.open_run(run.location)
    controls = opened._controls()
    assert isinstance(controls, RemoteControls)
    return controls


def decided(controls: RemoteControls, request: Request) -> Ticket:
    ticket = controls.put(request)
    wait_until(lambda: ticket.state != "queued")
    return ticket


def test_a_paused_run_is_described_as_it_describes_itself(run: nbp.Run, loop: Training) -> None:
    controls, own = reached(run), run.controls
    assert decided(controls, Control("pause")).text == "paused"
    step = held_at(run)
    wait_until(lambda: controls.status_head().state == "paused")
    assert (controls.status_head().step, controls.status_head().name) == (step, run.name)
    attached = decided(controls, Attach(("2",), "output_rms", "every(2)"))
    assert (attached.state, attached.applied_step) == ("applied", step)
    assert decided(controls, Set("lr", 0.25)).state == "applied"
    assert decided(controls, AddBreakpoint(AtStep(10**9))).state == "applied"
    most = own.rules["dead_units"].thresholds["most"] / 2
    assert decided(controls, EditRule("dead_units", {"most": most})).state == "applied"
    wait_until(lambda: len(controls.breakpoint_infos()) == 1)
    wait_until(lambda: controls.rules["dead_units"].thresholds["most"] == most)
    wait_until(lambda: controls.knobs()[0].value == 0.25)
    assert [*controls.breakpoint_infos()] == own.breakpoint_infos()
    assert [*controls.probes()] == own.probes()
    assert [*controls.knobs()] == own.knobs()
    assert {one.name for one in controls.attachable()} == {one.name for one in own.attachable()}
    assert [*controls.preset_infos()] == own.preset_infos()
    assert {**controls.fitting().kinds} == {**own.fitting().kinds}
    assert [*controls.severe_rules()] == own.severe_rules()
    assert sorted(controls.rule_names()) == sorted(own.rule_names())
    assert controls.restores == own.restores == ""
    assert controls.pending_looks() == ([], {})
    refused = decided(controls, Attach(("9",), "output_rms"))
    assert refused.state == "refused"
    with pytest.raises(UnknownNameError) as error:
        run.attach("9", "output_rms")
    assert refused.text == str(error.value), "word for word"


def test_a_panel_on_the_record_attaches_and_sees_the_series(run: nbp.Run, loop: Training) -> None:
    opened = nbp.open_run(run.location)
    session = PanelSession(opened, opened._controls())
    session.receive({"v": 1, "type": "hello", "view": "x"})
    answer = session.receive(
        {
            "v": 1,
            "type": "attach",
            "id": "1",
            "where": ["2"],
            "quantity": "output_rms",
            "schedule": "every(1)",
        }
    )
    assert answer is not None
    assert answer["state"] == "queued"

    def has_series() -> bool:
        session.publish(lambda message, buffers: None, "own subshell", session.head())
        return ("2", "output_rms") in session.look().series and "output_rms" in opened.data

    wait_until(has_series)
    assert int(opened.series("2", "output_rms").step[0]) > 0


def test_a_training_that_ends_and_comes_again_is_lost_and_found(
    watch: Watch, model: nn.Module, run: nbp.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_controls, "AGAIN_S", 0.05)
    controls = reached(run)
    monkeypatch.setattr(
        type(controls._source), "finished", property(lambda self: False)
    )  # as after a kill, when nothing in the record says that it has ended
    run.close()
    wait_until(lambda: "no process trains this run" in controls.status_head().problem)
    assert controls.status_head().state == "idle"
    refused = decided(controls, Control("pause"))
    assert (refused.state, "no process trains" in refused.text) == ("refused", True)
    again = watch(model, store=Path(run.location), control=True)
    again.flush()
    wait_until(lambda: controls.status_head().state == "waiting")
    with training(again, model):
        assert decided(controls, Control("pause")).text == "paused"
        held_at(again)
        assert decided(controls, Control("resume")).state == "applied"


def test_the_thread_ends_when_no_panel_asks(run: nbp.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    controls = reached(run)
    monkeypatch.setattr(remote_controls, "IDLE_S", 0.0)
    wait_until(lambda: controls._thread is not None and not controls._thread.is_alive())
    monkeypatch.undo()
    assert controls.status_head().name == run.name, "and begins again"
    wait_until(lambda: controls._thread is not None and controls._thread.is_alive())


def test_a_run_without_control_has_a_panel_that_reads(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None)
    run.flush()
    assert nbp.open_run(run.location)._controls() is None
    run.close()
    assert nbp.open_run(run.location)._controls() is None
