"""Beginning of messages about a run: to whom, and on which occasions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import partial

from notebook_probe.errors import RecordWarning
from notebook_probe.run.begin.ranks import own_rank
from notebook_probe.run.notify.lookout import (
    DEFAULT,
    EVERY_S,
    STALLED_S,
    Occasion,
    checked_occasions,
)
from notebook_probe.run.notify.notifier import Notifier
from notebook_probe.run.notify.services import Services
from notebook_probe.run.run import Run

__all__ = ["ADDRESSES", "OCCASIONS", "Addresses", "asked_services", "notify", "notify_by"]

Addresses = str | Sequence[str] | Services
"""One address, several, or the services of another run."""

ADDRESSES, OCCASIONS = "NOTEBOOK_PROBE_NOTIFY", "NOTEBOOK_PROBE_NOTIFY_ON"
"""Variables of the environment: addresses with spaces between them, and occasions with commas."""


def notify(
    run: Run,
    addresses: Addresses,
    on: Sequence[Occasion] = DEFAULT,
    *,
    every_s: float = EVERY_S,
    stalled_s: float = STALLED_S,
) -> Notifier:
    """Send messages about a run to a chat, a mailbox or a phone.

    A message has the name of the run, the step, the sentence of the alert, the next command, and a
    picture of its series where the service takes one and matplotlib is installed. A background
    thread looks once a second and sends: training never waits for it, and a service that fails is
    shown in the status. In a job of several processes the first one sends. Needs ``pip install
    'notebook-probe[notify]'``.

    Parameters
    ----------
    run : Run
    addresses : str or sequence of str
        `URLs of apprise <https://appriseit.com/services>`_, such as ``"slack://..."``. They are
        secrets: neither the record nor an error or ``repr`` has them.
    on : sequence of "remark", "warning", "severe", "end", "stalled"
        Alerts of this severity or a higher one; the end of the loop, by an error too, or of the
        run; no step for a while.
    every_s : float
        Minimum seconds between messages of a rule, of an end, and of a stall; the next message has
        the number of omitted ones.
    stalled_s : float
        Seconds without a step after which a loop that has not ended has stalled, or 20 times the
        usual time of a step if that is longer. A paused training does not stall.

    Returns
    -------
    Notifier
        ``close()`` ends it; closing the run does, too, after its last message.

    Raises
    ------
    TypeError, ValueError
        For an address that no service has, and another occasion.
    MissingExtraError
        Without apprise.
    ClosedRunError

    Examples
    --------
    >>> nbp.notify(run, "slack://...", on=["severe", "end"])  # doctest: +SKIP
    """
    for name, value in (("every_s", every_s), ("stalled_s", stalled_s)):
        if not value >= 0:
            raise ValueError(f"{name}={value!r}; a number of seconds is expected")
    occasions = checked_occasions(on)
    services = _services(addresses)
    begin = partial(
        Notifier, run.name, services=services, on=occasions, every_s=every_s, stalled_s=stalled_s
    )
    notifier = run.controls.accompany(begin)
    if own_rank() not in (None, 0):
        notifier.close()
    return notifier


def asked_services(addresses: Addresses | None) -> Services | None:
    """Return the services of `watch`; by default those of the environment, if it has any.

    A variable that cannot be used is named in a warning: training continues without messages.
    """
    if addresses is not None:
        return _services(addresses)
    words = os.environ.get(ADDRESSES, "").split()
    if not words:
        return None
    try:
        _occasions()
        return Services(words)
    except (ImportError, ValueError) as error:
        warnings.warn(f"{ADDRESSES}: no messages are sent: {error}", RecordWarning, stacklevel=3)
        return None


def notify_by(run: Run, services: Services | None) -> None:
    """Begin messages about a new run, on the occasions of the environment or the default ones."""
    if services is not None:
        notify(run, services, _occasions())


def _occasions() -> Sequence[Occasion]:
    words = [one.strip() for one in os.environ.get(OCCASIONS, "").split(",") if one.strip()]
    checked_occasions(words)
    return words or DEFAULT  # type: ignore[return-value]


def _services(addresses: Addresses) -> Services:
    if isinstance(addresses, Services):
        return addresses
    return Services([addresses] if isinstance(addresses, str) else addresses)
