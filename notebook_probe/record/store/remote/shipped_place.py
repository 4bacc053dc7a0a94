"""A record on its way to a store: spool, lease and shipper of one writer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from notebook_probe.errors import ProbeError, RecordWarning, RecordWriteError, first_line
from notebook_probe.record.store.location import Location
from notebook_probe.record.store.remote.engine import Engine
from notebook_probe.record.store.remote.lease import Lease
from notebook_probe.record.store.remote.mirror import RecordMirror
from notebook_probe.record.store.remote.shipper import Shipper
from notebook_probe.record.store.remote.spool import Spool

__all__ = ["ShippedPlace"]

BEGIN_S = 60.0
"""Seconds that a run waits for its first shipment, to tell a wrong address from a slow one."""


class ShippedPlace:
    """A spool whose record is shipped to ``engine``.

    Parameters
    ----------
    spool : Path
        Folder for the spool.
    every_s : float
        Seconds between two shipments.

    Raises
    ------
    RecordLockedError
        Another writer has the store.
    RecordFormatError
        Something else is there.
    RecordWriteError
        The store cannot be reached.
    """

    def __init__(self, engine: Engine, spool: Path, every_s: float) -> None:
        self.name = engine.name
        self._engine = engine
        with ExitStack() as failure, _reaching(engine):
            self._spool = Spool(spool, engine.name)
            failure.callback(self._spool.release)
            self._lease = Lease(engine, self._spool.note.token)
            failure.callback(self._lease.release)
            self.opening_note = self._spool.fill(engine)
            self._mirror = mirror = RecordMirror(self._spool, engine, self._progress)
            failure.pop_all()
        self.folder: Path = self._spool.folder
        self.folder.mkdir(exist_ok=True)
        self.readable: Location = self.folder
        self._shipper = Shipper(
            mirror.begin, mirror.ship, mirror.finish, self._lease.keep, self._end, every_s
        )

    @property
    def problem(self) -> str:
        problem = self._shipper.problem
        return f"{problem}; everything is in {self.folder}" if problem else ""

    def begin(self) -> None:
        """Ship the first commit.

        Raises
        ------
        RecordWriteError
            It does not reach the store.
        """
        if not self._shipper.start(BEGIN_S):
            problem = self._shipper.problem or f"no answer for {BEGIN_S:.0f} s"
            raise RecordWriteError(f"cannot write to {self.name}: {problem}")

    def flush(self, timeout_s: float) -> bool:
        return self._shipper.flush(timeout_s)

    def close(self) -> None:
        self._shipper.close()
        if n := self._mirror.n_sent_again:
            text = f"{n} objects had gone from {self.name} since they were shipped; sent again"
            warnings.warn(text, RecordWarning, stacklevel=2)
            self._mirror.n_sent_again = 0

    def _progress(self) -> None:
        """Note an answer of the store, and renew the lease if due."""
        self._shipper.answered()
        self._lease.keep()

    def abandon(self) -> None:
        if self._shipper.is_running:
            self._shipper.close(0.0)
        else:
            self._end(all_shipped=False)
            with suppress(Exception):  # the error that is being raised says more
                self._lease.release()

    def _end(self, all_shipped: bool) -> None:
        """Remove the spool if everything was shipped; keep the rest for the next writer."""
        if all_shipped:
            with suppress(Exception):  # then it ends without help
                self._lease.release()
            self.readable = self._engine.reader()
            self._spool.remove()
        else:
            self._spool.release()


@contextmanager
def _reaching(engine: Engine) -> Iterator[None]:
    """Convert any error of a library to a RecordWriteError that names the store."""
    try:
        yield
    except ProbeError:
        raise
    except Exception as error:
        raise RecordWriteError(f"cannot reach {engine.name}: {first_line(error)}") from error
