"""Writing a record: rows from the training thread, everything else in a separate thread."""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from types import MappingProxyType
from typing import Any, Self

import numpy.typing as npt

from notebook_probe.axis import PER_CHANNEL, Axis, PerChannel
from notebook_probe.errors import QuantityError
from notebook_probe.printable import counted
from notebook_probe.record.format.kinds import NAMED, NAMED_VALUE, Kind, blob, blob_name, kind_of
from notebook_probe.record.format.resume import ResumeLike, read_resume
from notebook_probe.record.format.schema import LOGGED, SCALARS, check_quantity, module_label
from notebook_probe.record.format.source import ModuleRow, Variable
from notebook_probe.record.read.reader import open_record
from notebook_probe.record.store.location import Location
from notebook_probe.record.views.branches.branches import StreamName, is_evaluation
from notebook_probe.record.write import closing
from notebook_probe.record.write.backfill import Backfill
from notebook_probe.record.write.checked_event import checked_event
from notebook_probe.record.write.checked_series import checked_series
from notebook_probe.record.write.disk_use import bytes_by_quantity
from notebook_probe.record.write.flusher import Durability, Options
from notebook_probe.record.write.model import differing, extended, labelled
from notebook_probe.record.write.opening import CHANGED_MODULES, Opened, open_to_write
from notebook_probe.record.write.recorded_source import RecordedSource
from notebook_probe.record.write.streams.shaped import ArrayWriter, RaggedWriter, check_shape
from notebook_probe.record.write.streams.stream import StreamWriter
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["RecordWriter"]


class RecordWriter:
    """The one writer of a record: makes it, or continues one of the same model.

    Parameters
    ----------
    location : str, Path, zarr Store or RemoteStore
        Folder of the record on a local disk, or a store that it is shipped to.
    title : str
        Name of the run.
    modules : sequence of ModuleRow
        The model, in definition order.
    attrs : mapping of str to str, optional
        Further attributes of the root group.
    resume : None, bool, int or str
        Handling of an existing record: continue after its last step (None, or True if it must
        exist), refuse it (False), continue at an earlier step, removing what was recorded at that
        step and later (int), or keep everything and start a branch (``"branch"``,
        ``"branch(step)"``).
    flush_s, flush_rows : float, int
        Rows reach the disk after this number of seconds or of rows, whichever comes first; a slow
        disk makes it later, so that flushing takes about half a per cent of one core.
    ring_bytes : int
        Memory for rows that wait; more are dropped, and counted.
    max_bytes : int, optional
        Size on disk at which recording stops: everything recorded till then is kept, later rows are
        refused and counted, and an event and the attribute ``recording_stopped`` say so. The last
        flush may exceed it by the rows recorded since the previous one.
    keep_bits : mapping of str to int, optional
        Bits of the mantissa, 1 to 22 of 23, that are stored of some quantities, by name; 10 halve
        the record, with a relative error of 0.05 %. Said in the arrays' attribute ``keep_bits``.
    durability : "kill" or "power loss"
        Failure that published rows survive: the end of the process by any cause, or also of the
        machine. The latter waits for the disk at every flush, on the writer's thread.
    chunks : mapping of str to int, optional
        Rows (``"step"``) and modules (``"module"``) of a chunk of a new record.

    Raises
    ------
    RecordFormatError
        Something else is there; it is not changed.
    RecordMismatchError
        There is a record of another model.
    RecordLockedError
        Another writer has it.
    RecordWriteError
        The record cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from notebook_probe.record import Variable, open_record
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(folder, title="first", modules=[]) as writer:
    ...     stream = writer.stream("every_1", "every(1)")
    ...     stream.extend(["fc"], [Variable("norm")])
    ...     for step in range(3):
    ...         kept = stream.record(step, 0, np.array([[step / 2]], np.float32))
    >>> open_record(folder).series("fc", "norm").values.tolist()
    [0.0, 0.5, 1.0]
    """

    branch: int
    """The branch that is written, from 1."""
    first_step: int
    """The step to begin with."""
    removed: str
    """Sentence with the steps of the record that were removed first; empty if none was."""

    def __init__(
        self,
        location: Location,
        *,
        title: str,
        modules: Sequence[ModuleRow],
        attrs: Mapping[str, str] = MappingProxyType({}),
        resume: ResumeLike = None,
        flush_s: float = 1.0,
        flush_rows: int = 4096,
        ring_bytes: int = 32 << 20,
        max_bytes: int | None = None,
        keep_bits: Mapping[str, int] = MappingProxyType({}),
        durability: Durability = "kill",
        chunks: Mapping[str, int] | None = None,
    ) -> None:
        options = Options(
            flush_s=flush_s,
            flush_rows=flush_rows,
            ring_bytes=ring_bytes,
            max_bytes=max_bytes,
            keep_bits=keep_bits,
            durability=durability,
            chunks=chunks,
        )
        attrs, chosen = {**attrs, "title": title}, read_resume(resume)
        self.store = location
        with ExitStack() as undo:
            with uninterrupted:
                opened = open_to_write(location, labelled(modules), attrs, chosen, options)
                undo.callback(opened.close)
                self._take(title, opened)
            undo.pop_all()

    def _take(self, title: str, opened: Opened) -> None:
        # Attributes are read, then replaced: of two threads at once one would lose its own.
        self._annotating = threading.Lock()
        self._files, self._commits = opened.files, opened.commits
        self._flusher, self._place = opened.flusher, opened.place
        self.continued, self.location = opened.continued, opened.place.name
        self.run_id = str(opened.flusher.attrs["run_id"])
        self.first_step, self.branch = opened.first_step, opened.branch
        self.removed = opened.removed
        self.source = RecordedSource(title, self._place, opened.modules, self._flusher)
        self.out_of_order = Backfill(self._flusher, self.source, self.branch, self.first_step)
        # Also when the writer is forgotten, and at the interpreter's exit.
        self._ends = weakref.finalize(
            self, closing.close_by_itself, self._flusher, self._place, self.source
        )
        if self._place.opening_note:
            self.event(self.last_step + 1, "spool", self._place.opening_note)

    @classmethod
    def reopen(cls, location: Location) -> Self:
        """Continue an existing record of any model, to write into its steps.

        Raises
        ------
        RecordFormatError, RecordLockedError, RecordWriteError
            There is none, or another writer has it, or it cannot be written.
        """
        record = open_record(location)
        return cls(location, title=record.name, modules=record.modules, resume=True)

    @property
    def last_step(self) -> int:
        """Greatest step in any stream, -1 when there is none."""
        return max((stream.last_step for stream in self._streams()), default=-1)

    @property
    def last_evaluated(self) -> int:
        """Step of the last state at which this branch has measured, -1 when there is none."""
        measured = (one for one in self._streams() if is_evaluation(one.name, self.branch))
        return max((stream.last_step for stream in measured), default=-1)

    @property
    def dropped_rows(self) -> int:
        """Rows of this writer that did not reach the disk and never will."""
        return self._flusher.dropped_rows

    @property
    def last_error(self) -> str:
        """Reason why the last flush or shipment failed, as text; empty if it succeeded."""
        return self._flusher.last_error or self._place.problem

    @property
    def stopped(self) -> str:
        """Reason why nothing more is recorded, as text; empty while recording."""
        return self._flusher.stopped

    @property
    def flushed_at(self) -> float | None:
        """``time.monotonic()`` of the last flush that wrote something."""
        return self._flusher.flushed_at

    @property
    def nbytes(self) -> int:
        """Size of the record on disk."""
        return self._files.nbytes

    def bytes_by_quantity(self) -> dict[str, int]:
        """Bytes on disk of each quantity, its pyramid included, the largest first."""
        return bytes_by_quantity(self._files.sizes)

    def published_rows(self, stream: str) -> int:
        """Rows of a stream that readers of the store can see; of vectors, ``"hist/<name>"``."""
        path = stream if "/" in stream else f"{SCALARS}/{stream}"
        return self._flusher.streams[path].published

    def stream(
        self, name: str, long_name: str = "", axis: Axis | PerChannel | None = None
    ) -> StreamWriter:
        """Return the stream ``name``, made if new; of numbers, or of vectors along ``axis``.

        Raises
        ------
        ScheduleError, QuantityError
            For a name or an axis that the record cannot hold.
        """
        found = self._stream(name, long_name, kind_of(axis))
        if isinstance(axis, Axis) and axis is not found.axis:
            self._flusher.names.claim_axis(axis)
            found.axis = axis  # an equal one, which need not be compared again
        return found

    def named(self, name: str = LOGGED) -> StreamWriter:
        """Return a stream of many named scalars, a column each; made if new."""
        found = self._stream(name, "every(1)" if name == LOGGED else "", NAMED)
        found.extend(variables=[NAMED_VALUE])
        return found

    @property
    def scalar_names(self) -> frozenset[str]:
        """The columns of all `named`, of every branch."""
        named = (stream for stream in self._streams() if stream.kind is NAMED)
        return frozenset(name for stream in named for name in stream.modules)

    def ragged(self, name: str, long_name: str = "") -> RaggedWriter:
        """Return the per-module vectors on the schedule ``name``, made if new.

        Raises
        ------
        ScheduleError
            For a name that the record cannot hold.
        """
        return RaggedWriter(self.stream(name, long_name, PER_CHANNEL))

    def arrays(self, variable: Variable, module: str, shape: Sequence[int]) -> ArrayWriter:
        """Return the arrays of ``shape`` of a quantity at a module, such as images; made if new.

        Raises
        ------
        QuantityError
            A name that the record cannot store or that has another meaning, or another shape than
            in the record.
        """
        check_quantity(variable.name)
        label = module_label(module)
        kind = blob(variable.name, label, check_shape(shape))
        self._flusher.names.claim_folder(kind.group)
        self._flusher.names.claim(variable.name, kind.meaning)  # or an empty stream would stay
        found = self._stream(blob_name(label), label, kind)
        found.extend([label], [variable])
        if found.kind.cell != kind.cell:
            raise QuantityError(
                f"{variable.name} of {label!r} has shape {found.kind.cell} in this record, "
                f"not {kind.cell}"
            )
        return ArrayWriter(found)

    def _stream(self, name: str, long_name: str, kind: Kind) -> StreamWriter:
        flusher, full_name = self._flusher, str(StreamName(name, self.branch))
        path = f"{kind.group}/{full_name}"
        if path not in flusher.streams:
            kind.check(name)
            flusher.begin(full_name, long_name or name, kind)
        return flusher.streams[path]

    def backfill(
        self,
        module: str,
        quantity: str,
        steps: npt.ArrayLike,
        values: npt.ArrayLike,
        units: str = "1",
        long_name: str = "",
        attrs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write a series into any steps, passed ones as well; from any thread.

        Existing values are no longer read, and stay on disk.

        Parameters
        ----------
        module : str
            Path of a module or a parameter of the model, ``""`` for the whole.
        quantity : str
            Name of the quantity; for the whole model also a scalar's name, such as ``"test/loss"``.
        steps, values
            A step and its value, or as many of both, in any order.
        units, long_name, attrs
            Attributes of a new quantity.

        Raises
        ------
        UnknownNameError, ValueError, QuantityError
            Before anything is written.
        RecordWriteError
            The record cannot be written.
        """
        new = Variable(quantity, units, long_name, attrs)
        series = checked_series(self.source, module, new, steps, values)
        self.out_of_order.write(
            series.steps, [series.column], [series.variable], series.values, series.kind
        )

    @property
    def attrs(self) -> Mapping[str, Any]:
        """Attributes of the root, as they will be published."""
        return self._flusher.attrs

    def annotate(self, **attrs: Any) -> None:
        """Set attributes of the root, values of JSON; from any thread."""
        with self._annotating:
            self._flusher.attrs = {**self._flusher.attrs, **attrs}

    def follow_model(self, modules: Sequence[ModuleRow]) -> None:
        """Note that the model now has these modules: new ones are appended to the table.

        Modules that were added, removed or replaced do not make it another model when the record is
        resumed.
        """
        recorded, current = self.source.modules, labelled(modules)
        changed = differing(recorded, current)
        if changed:
            table = extended(recorded, current)
            known = sorted(changed.union(self.attrs.get(CHANGED_MODULES, ())))
            self.annotate(**{CHANGED_MODULES: known})
            self._commits.describe(table)
            self.source.modules = table

    def feed(self, bring: Callable[[], None]) -> None:
        """Call ``bring``, a method with a weakly referenced object, to record what waits elsewhere.

        It is called before each flush, on the writer's thread.
        """
        # Weakly: a strong reference from the flusher's thread would keep the run alive forever.
        self._flusher.bring = weakref.WeakMethod(bring)

    def lose(self, n_rows: int, why: str) -> None:
        """Count rows that cannot be recorded, because they cannot even be made."""
        self._flusher.losses.count(n_rows, why)

    def event(self, step: int, kind: str, text: str, detail: str = "") -> None:
        """Note that something happened at ``step``; ``detail`` is JSON for programs.

        Raises
        ------
        TypeError
            For a step that is no whole number, and text that is none.
        """
        self._flusher.events.append(checked_event(step, kind, text, detail))

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until everything recorded so far is stored; False when it failed or took longer."""
        return self._flusher.flush(timeout_s) and self._place.flush(timeout_s)

    def flush_soon(self) -> None:
        """Store what was recorded so far at once, without waiting for it."""
        self._flusher.flush_soon()

    def flush_or_raise(self, timeout_s: float = 10.0) -> None:
        """Flush, raise RecordWriteError if that fails, and warn if it is slow; see `flush`."""
        closing.flush_record(self._flusher, self._place, timeout_s)

    def close(self) -> None:
        """Write the rest and mark the record closed; safe to call twice.

        Rows that cannot be written are counted in ``dropped_rows``, and ``last_error`` says why. A
        forgotten writer closes when it is garbage collected, with a warning.

        Raises
        ------
        RecordWriteError
            The record is incomplete; the writer is closed anyway.
        """
        of_record = self._flusher, self._place, self.source
        closing.end_once(self._ends, lambda: closing.close_record(*of_record))

    def discard_if_empty(self) -> bool:
        """Close, and remove the record when it holds no row and no event."""
        self.close()
        rows = sum(stream.n_rows for stream in self._streams())
        if rows or self._flusher.events or not self._flusher.finished:
            return False
        shutil.rmtree(self._place.folder, ignore_errors=True)
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        with nullcontext() if error is None else closing.losses_as_warnings():
            self.close()

    def __repr__(self) -> str:
        named = ((one.path.removeprefix(f"{SCALARS}/"), one) for one in self._streams())
        rows = ", ".join(f"{name}: {counted(stream.n_rows, 'row')}" for name, stream in named)
        return f"<RecordWriter {self.location!r}; {rows or 'no rows'}>"

    def _streams(self) -> tuple[StreamWriter, ...]:
        return tuple(self._flusher.streams.values())
