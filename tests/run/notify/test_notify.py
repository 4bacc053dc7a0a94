"""Messages of a run reach services; their addresses stay secret, and training does not wait."""

from __future__ import annotations

import copy
import logging
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.run.begin import notified
from notebook_probe.run.notify import notifier as threads
from notebook_probe.run.notify.services import Services
from tests.models import floats, made, mlp, sgd, train
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch, watch

__all__ = ["watch"]

SECRET = "T0K3N-of-mine"
ADDRESS = f"slack://{SECRET}/channel"
batch = floats(5, 4)


class FakeApprise(ModuleType):
    """Has the names of apprise that are used; a service is in the scheme of its address."""

    def __init__(self) -> None:
        super().__init__("apprise")
        self.sent: list[tuple[str, str]] = []
        self.let_go = threading.Event()
        fake = self

        class Apprise:
            """One address."""

            def __init__(self, asset: object) -> None:
                self.kind = ""

            def add(self, address: str) -> bool:
                self.kind = address.partition(":")[0]
                logging.getLogger("apprise").error("loaded %s", address)
                return self.kind != "nothing"

            def notify(self, body: str, title: str, attach: object) -> bool:
                logging.getLogger("apprise").error("sent by %s", SECRET)
                if self.kind == "raises":
                    raise OSError(f"no way to {SECRET}")
                if self.kind == "hangs":
                    fake.let_go.wait(10)
                fake.sent.append((title, body))
                return self.kind != "refuses"

        def asset(**_: object) -> None:
            """Nothing is configured."""

        self.Apprise, self.AppriseAsset = Apprise, asset
        self.AppriseAttachment = lambda: SimpleNamespace(add=lambda one: None)
        memory = SimpleNamespace(AttachMemory=lambda content, name: content)
        self.attachment = SimpleNamespace(memory=memory)


@pytest.fixture
def apprise(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApprise]:
    fake = FakeApprise()
    monkeypatch.setitem(sys.modules, "apprise", fake)
    monkeypatch.setattr(threads, "LOOK_S", 0.01)
    monkeypatch.setattr(threads, "picture_of", lambda *_: None)
    yield fake
    fake.let_go.set()


def diverge(run: nbp.Run) -> None:
    for loss in (1.0, float("nan")):
        run.log(loss=loss)
        run.step()


def test_a_severe_alert_and_the_end_are_sent(apprise: FakeApprise, watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    with nbp.notify(run, ADDRESS):
        train(model, sgd(model), batch, range(1))
        diverge(run)
        run.close()
    titles = [title for title, _ in apprise.sent]
    assert any(title.startswith("Sequential: ") and "step" in title for title in titles), titles
    assert any("ended at step" in title for title in titles), titles
    assert all(f"nbp explain {run.location}" in body for _, body in apprise.sent)


@pytest.mark.slow
def test_an_address_is_in_no_text_and_no_file(
    apprise: FakeApprise,
    watch: Watch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    model = made(mlp)
    run = watch(model, probes=None, notify=[ADDRESS, f"raises://{SECRET}"])
    train(model, sgd(model), batch, range(1))
    run.close()
    services = run.controls.options["notify"]
    shown = [repr(services), str(run.status()), repr(run), run.status().problem]
    shown += [repr(run.controls.options), *(str(one) for one in run.all_events)]
    run.to_html(tmp_path / "run.html")
    files = [*Path(run.location).rglob("*"), tmp_path / "run.html"]
    written = b"".join(one.read_bytes() for one in files if one.is_file())
    assert SECRET not in "".join([*shown, *capfd.readouterr()])
    assert SECRET.encode() not in written
    assert repr(services) == "<Services: slack, raises>"
    assert copy.deepcopy(services) is services
    with pytest.raises(TypeError, match="secrets"):
        pickle.dumps(services)


def test_a_wrong_address_is_refused_without_being_shown(apprise: FakeApprise) -> None:
    for wrong in ([ADDRESS, f"nothing://{SECRET}"], [f"{SECRET}"], [f"nothing://{SECRET}"]):
        with pytest.raises(ValueError, match=r"address \d of \d") as refused:
            Services([one if "://" in one else f"nothing:{one}" for one in wrong])
        assert SECRET not in str(refused.value)
    with pytest.raises(TypeError, match="address 2 is int"):
        Services([ADDRESS, 7])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="no address"):
        Services([])


def test_a_failing_service_is_in_the_status_until_it_takes_a_message(
    apprise: FakeApprise, watch: Watch
) -> None:
    run = watch(made(mlp), probes=None)
    notifier = nbp.notify(run, ["refuses://x", ADDRESS])
    diverge(run)
    run.close()
    assert notifier.problem == "notifications: refuses took none"
    assert notifier.n_sent == 0
    assert len(apprise.sent) >= 2, "the other service has it"
    assert run.status().problem == notifier.problem
    assert "refuses took none" in repr(notifier)


def test_a_service_that_hangs_holds_up_neither_training_nor_closing_for_long(
    apprise: FakeApprise, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "LAST_S", 0.05)
    monkeypatch.setattr(threads, "MOST_S", 0.0)
    alone, model = made(mlp), made(mlp)
    train(alone, sgd(alone), batch, range(3))
    run = watch(model, probes=None, notify="hangs://x")
    run.log(loss=float("nan"))
    train(model, sgd(model), batch, range(3))
    run.close()
    assert differing(everything(alone), everything(model)) == []
    assert run.status().problem.startswith("notifications: no answer for")


def test_addresses_and_occasions_come_from_the_environment(
    apprise: FakeApprise, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(notified.ADDRESSES, f"{ADDRESS} mailto://{SECRET}")
    monkeypatch.setenv(notified.OCCASIONS, "end")
    model = made(mlp)
    run = watch(model, probes=None)
    train(model, sgd(model), batch, range(1))
    diverge(run)
    run.close()
    assert {title.partition(" at ")[0] for title, _ in apprise.sent} == {"Sequential: ended"}


@pytest.mark.parametrize(
    ("name", "text"), [("ADDRESSES", f"nothing://{SECRET}"), ("OCCASIONS", "sever")]
)
def test_an_environment_that_cannot_be_used_costs_a_warning_and_no_training(
    apprise: FakeApprise, watch: Watch, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setenv(notified.ADDRESSES, ADDRESS)
    monkeypatch.setenv(getattr(notified, name), text)
    with pytest.warns(nbp.RecordWarning, match="no messages are sent") as told:
        run = watch(made(mlp), probes=None)
    assert SECRET not in str(told[0].message)
    assert not run.closed


def test_without_apprise_the_error_says_how_to_install_it(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    run = watch(made(mlp), probes=None)
    with pytest.raises(nbp.MissingExtraError, match=r"notebook-probe\[notify\]"):
        nbp.notify(run, ADDRESS)
    with pytest.raises(AttributeError, match=r"notebook_probe.notify\(run"):
        _ = run.notify  # type: ignore[attr-defined]


def test_one_process_of_a_job_sends(
    apprise: FakeApprise, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notified, "own_rank", lambda: 3)
    assert nbp.notify(watch(made(mlp), probes=None), ADDRESS).closed


@pytest.mark.parametrize("options", [{"every_s": -1}, {"stalled_s": float("nan")}])
def test_a_time_that_cannot_be_is_refused(
    apprise: FakeApprise, watch: Watch, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="seconds"):
        nbp.notify(watch(made(mlp), probes=None), ADDRESS, **options)
