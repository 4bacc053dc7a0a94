"""Messages through apprise arrive at servers of this machine, with a picture where one is taken."""

from __future__ import annotations

import base64
from email import message_from_string
from pathlib import Path

import pytest

import notebook_probe as nbp
from tests.libraries.loopback import mailbox, webhook
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning"),  # apprise's
]

SECRET = "T0K3N"
PNG = b"\x89PNG\r\n"
batch = floats(5, 4)


def fail(run: nbp.Run) -> None:
    """Train ten steps, with a loss that is then NaN."""
    for loss in [*(1.0 for _ in range(10)), float("nan")]:
        run.log(loss=loss)
        run.step()
    run.close()


def test_a_webhook_gets_an_alert_with_a_picture_and_the_end(watch: Watch) -> None:
    with webhook() as (port, taken):
        run = watch(made(mlp), probes=None, name="first")
        notifier = nbp.notify(run, f"json://127.0.0.1:{port}/{SECRET}")
        fail(run)
    alert = next(one for one in taken if "loss" in one["message"])
    assert alert["title"].startswith("first: ")
    assert "step 10" in alert["title"]
    assert f"nbp explain {run.location}" in alert["message"]
    (picture,) = alert["attachments"]
    assert base64.b64decode(picture["base64"]).startswith(PNG)
    assert taken[-1]["title"] == "first: ended at step 11"
    assert (notifier.n_sent, notifier.problem) == (len(taken), "")


def test_a_mailbox_gets_a_mail(watch: Watch) -> None:
    model = made(mlp)
    with mailbox() as (port, mails):
        address = f"mailto://127.0.0.1:{port}?from=run@lab.org&to=me@lab.org&mode=insecure"
        run = watch(model, probes=None, name="first", notify=address)
        train(model, sgd(model), batch, range(3))
        run.close()
    (mail,) = map(message_from_string, mails)
    assert "first: ended at step 3" in str(mail["Subject"])
    assert run.status().problem == ""


@pytest.mark.parametrize("status", [404, 500])
def test_a_service_that_refuses_is_in_the_status_and_its_address_is_not(
    watch: Watch, capfd: pytest.CaptureFixture[str], status: int
) -> None:
    with webhook(status) as (port, taken):
        run = watch(made(mlp), probes=None, notify=f"json://user:{SECRET}@127.0.0.1:{port}/")
        fail(run)
    assert taken
    assert run.status().problem == "notifications: json took none"
    assert SECRET not in "".join(capfd.readouterr())


def test_a_host_that_is_not_there_stops_nothing(watch: Watch, tmp_path: Path) -> None:
    with webhook() as (port, _):
        """The port is free afterwards."""
    run = watch(made(mlp), probes=None, notify=f"json://127.0.0.1:{port}/{SECRET}")
    fail(run)
    assert run.status().problem == "notifications: json took none"


def test_an_address_of_no_service_is_refused_without_being_shown(watch: Watch) -> None:
    with pytest.raises(ValueError, match="address 1 of 1, slak://") as refused:
        nbp.notify(watch(made(mlp), probes=None), f"slak://{SECRET}")
    assert SECRET not in str(refused.value)
