"""One writer per remote record: a lease that expires unless its holder renews it.

It is a small document that is replaced only if no other process has replaced it in between. Its end
is given by the holder's clock, so the clocks of writers should agree within some seconds; if they
do not, the loser of the lease notices at its next renewal and ships no more.
"""

from __future__ import annotations

import json
import os
import socket
import time
from datetime import UTC, datetime
from typing import Any

from notebook_probe.errors import RecordLockedError
from notebook_probe.record.store.remote.engine import ConflictError, Engine, Leased

__all__ = ["LEASE_S", "RENEW_S", "Lease"]

LEASE_S = 90.0
"""A dead writer's record can be taken over after so long, or at once from its own spool."""
RENEW_S = 30.0


class Lease:
    """The right to write to ``engine``, until `release`.

    Parameters
    ----------
    token : str
        Token of this writer. A lease with it is the writer's own, also in a later process.

    Raises
    ------
    RecordLockedError
        Another writer has it; the message says which.
    """

    def __init__(self, engine: Engine, token: str) -> None:
        self._engine = engine
        self._token = token
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        before = engine.lease()
        if before is not None and not self._is_free(before):
            raise RecordLockedError(f"{engine.name} has another writer: {_holder(before)}")
        try:
            self._held = self._swap(before)
        except ConflictError as error:  # another was faster
            holder = _holder(engine.lease())
            raise RecordLockedError(f"{engine.name} has another writer: {holder}") from error

    def keep(self) -> None:
        """Renew it when a third of its time is over.

        Raises
        ------
        RecordLockedError
            Another writer has taken it.
        """
        if time.monotonic() - self._renewed > RENEW_S:
            self.renew()

    def renew(self) -> None:
        """Renew it now."""
        try:
            self._held = self._swap(self._held)
        except ConflictError:
            found = self._engine.lease()
            # None if the store was emptied: the lease is free then, and one writer can take it.
            if found is not None and _read(found).get("token") != self._token:
                raise RecordLockedError(
                    f"another writer took over {self._engine.name}: {_holder(found)}"
                ) from None
            self._held = self._swap(found)  # ours: the answer to the last renewal was lost

    def release(self) -> None:
        """Give it back."""
        self._engine.drop_lease(self._held)

    def _swap(self, before: Leased | None) -> Leased:
        owner = {
            "token": self._token,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": self._started,
            "ends": time.time() + LEASE_S,
        }
        # Before the request: its time counts against the lease.
        self._renewed = time.monotonic()
        return self._engine.swap_lease(json.dumps(owner).encode(), before)

    def _is_free(self, lease: Leased) -> bool:
        owner = _read(lease)
        ends = owner.get("ends")
        is_over = not isinstance(ends, int | float) or ends < time.time()
        return is_over or owner.get("token") == self._token


def _read(lease: Leased) -> dict[str, Any]:
    try:
        owner = json.loads(lease.content)
    except ValueError:
        owner = None
    return owner if isinstance(owner, dict) else {}


def _holder(lease: Leased | None) -> str:
    owner = {} if lease is None else _read(lease)
    return (
        f"process {owner.get('pid', '?')} on {owner.get('host', '?')}, "
        f"since {owner.get('started', 'unknown')}"
    )
