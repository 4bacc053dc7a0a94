"""A mailbox whose store does not answer for a while: no answer is lost, no ticket is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Attach, Control
from notebook_probe.run.remote_control import lines, remote_controls, sharing
from notebook_probe.run.remote_control.mail import LocalMail, mail_of
from notebook_probe.run.remote_control.remote_controls import RemoteControls
from tests.run.conftest import Watch
from tests.run.loops import training, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_mailbox")]


class AwayMail(LocalMail):
    """A mailbox in a folder, of which whatever begins with ``away`` fails."""

    away: str | None = None
    failed: set[str]
    poll_s = 0.01

    def check(self, action: str) -> None:
        if self.away is not None and action.startswith(self.away):
            self.failed.add(action)
            raise OSError("no route to host")

    def sizes(self, under: str) -> dict[str, int]:
        self.check(f"list {under}")
        return super().sizes(under)

    def read(self, key: str, most_bytes: int) -> bytes | None:
        self.check(f"read {key}")
        return super().read(key, most_bytes)

    def write(self, key: str, content: bytes) -> None:
        self.check(f"write {key}")
        super().write(key, content)

    def delete(self, key: str) -> None:
        self.check(f"delete {key}")
        super().delete(key)


def of_away(place: object) -> AwayMail:
    local = mail_of(place)  # type: ignore[arg-type]
    assert isinstance(local, LocalMail)
    return AwayMail(local._folder)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> type[AwayMail]:
    """The mailbox as the panel sees it, tried again at once."""
    seen = type("SeenByThePanel", (AwayMail,), {"failed": set()})
    monkeypatch.setattr(lines, "mail_of", lambda place: seen(of_away(place)._folder))
    monkeypatch.setattr(remote_controls, "AGAIN_S", 0.02)
    return seen


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> type[AwayMail]:
    """The mailbox as the training sees it."""
    seen = type("SeenByTheTraining", (AwayMail,), {"failed": set()})
    monkeypatch.setattr(sharing, "mail_of", lambda place: seen(of_away(place)._folder))
    return seen


@pytest.fixture
def run(there: type[AwayMail], watch: Watch, model: nn.Module) -> nbp.Run:
    run = watch(model, probes={"0": ["output_norm"]}, control=True)
    run.flush()
    return run


def reached(run: nbp.Run) -> RemoteControls:
    controls = nbp.open_run(run.location)._controls()
    assert isinstance(controls, RemoteControls)
    return controls


def test_a_training_whose_store_is_silent_keeps_its_last_state_and_says_why(
    run: nbp.Run, model: nn.Module, here: type[AwayMail]
) -> None:
    with training(run, model):
        controls = reached(run)
        wait_until(lambda: controls.status_head().state == "training")
        here.away = ""
        wait_until(lambda: controls.status_head().unheard)
        head = controls.status_head()
        assert head.state == "training", "as far as is known"
        assert head.problem.endswith(": cannot reach the store of this record: no route to host")
        ticket = controls.put(Control("pause"))
        wait_until(lambda: ticket.state == "refused")
        assert ticket.text == "not sent: cannot reach the store of this record: no route to host"
        here.away = None
        wait_until(lambda: not controls.status_head().unheard)
        assert controls.status_head().problem == ""


def test_a_request_that_was_sent_before_its_store_went_away_has_the_answer_of_the_training(
    run: nbp.Run, model: nn.Module, here: type[AwayMail]
) -> None:
    with training(run, model):
        controls = reached(run)
        here.away = "read out"
        ticket = controls.put(Attach(("2",), "output_rms"))
        wait_until(lambda: "output_rms" in {one.quantity for one in run.status().probes})
        wait_until(lambda: controls.status_head().unheard)
        assert ticket.state == "queued", "nothing else is known"
        here.away = None
        wait_until(lambda: ticket.state == "applied")


def test_a_request_that_may_not_have_arrived_is_refused_once_that_is_known(
    run: nbp.Run, model: nn.Module, here: type[AwayMail], monkeypatch: pytest.MonkeyPatch
) -> None:
    with training(run, model):
        controls = reached(run)
        here.away = "write in"
        ticket = controls.put(Attach(("2",), "output_rms"))
        wait_until(lambda: controls.status_head().unheard)
        assert ticket.state == "queued"
        monkeypatch.setattr(remote_controls, "LOST_S", 0.1)
        here.away = None
        wait_until(lambda: ticket.state == "refused")
        assert ticket.text == "the request was lost, as its store did not answer"
        assert "output_rms" not in {one.quantity for one in run.status().probes}


def test_a_request_to_a_training_that_was_started_again_meanwhile_is_refused(
    run: nbp.Run, watch: Watch, model: nn.Module, here: type[AwayMail]
) -> None:
    controls = reached(run)
    here.away = "read out"
    ticket = controls.put(Attach(("2",), "output_rms"))
    wait_until(lambda: controls.status_head().unheard)
    here.away = ""
    place = Path(run.location)
    controls._source = nbp.open_run(place)
    run.close()
    again = watch(model, store=place, control=True)
    again.flush()
    here.away = None
    wait_until(lambda: ticket.state == "refused")
    assert "started again" in ticket.text or "no process trains" in ticket.text


def test_an_answer_that_the_training_cannot_leave_is_left_once_its_store_answers(
    run: nbp.Run, model: nn.Module, there: type[AwayMail]
) -> None:
    with training(run, model):
        controls = reached(run)
        there.away = "write out"
        ticket = controls.put(Attach(("2",), "output_rms"))
        wait_until(lambda: bool(controls._sent))
        [key] = controls._sent
        wait_until(lambda: f"write out/{key}.json" in there.failed)
        there.away = None
        wait_until(lambda: ticket.state == "applied")


def test_the_state_is_asked_for_again_if_its_answer_was_lost(
    run: nbp.Run, model: nn.Module, there: type[AwayMail], monkeypatch: pytest.MonkeyPatch
) -> None:
    with training(run, model):
        controls = reached(run)
        there.away = "write out"
        wait_until(lambda: f"write out/{controls._seeing}.json" in there.failed)
        monkeypatch.setattr(remote_controls, "LOST_S", 0.1)
        there.away = None
        before = controls.status_head().step
        wait_until(lambda: controls.status_head().step > before)
