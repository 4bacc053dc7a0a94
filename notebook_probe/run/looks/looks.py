"""Looks at a module: requested between two steps, measured in the next, reported after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from notebook_probe.axis import ARRAYS
from notebook_probe.checks import whole_number
from notebook_probe.errors import NotApplicableError, ProbeError, QuantityError
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.loss.kept_calls import KeptCalls
from notebook_probe.probes.step.probe import Probe
from notebook_probe.record.format.source import ROOT, Event, Variable
from notebook_probe.record.views.looks import (
    GONE,
    LOOK,
    MOST_LOOKS,
    TensorFacts,
    detail_of,
    every_look_of,
    gone_detail,
    looks_of,
)
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.attach.request import resolve
from notebook_probe.run.attach.requests import LookAt, Ticket
from notebook_probe.run.looks.at_rest import tensors_at_rest
from notebook_probe.run.looks.kept_tensor import TENSORS, KeptTensor
from notebook_probe.run.looks.sample_copies import SampleCopies
from notebook_probe.schedules import Steps
from notebook_probe.uninterrupted import InterruptibleCondition

__all__ = ["MOST_BYTES", "Looks"]

MOST_BYTES = 256 * 2**20
"""Maximum bytes of all looks of a record, including removed ones, which stay on disk."""
MOST_SAMPLES = 64
TICK_S = 0.05


@dataclass(frozen=True, slots=True)
class _OpenLook:
    """A look whose step is not over."""

    module: str
    step: int
    samples: int
    tensors: Sequence[KeptTensor]
    probes: Sequence[Probe]
    soon: bool
    """A user waits for it."""


class Looks:
    """The looks of one run.

    Parameters
    ----------
    probes : ProbeSet
    record : RecordWriter
    events : callable
        Events of the record so far, which include looks of earlier runs.
    calls : KeptCalls
    """

    def __init__(
        self,
        probes: ProbeSet,
        record: RecordWriter,
        events: Callable[[], Sequence[Event]],
        calls: KeptCalls,
    ) -> None:
        self._probes, self._record, self._events = probes, record, events
        self._calls = calls
        self._asked: tuple[_OpenLook, ...] = ()
        self._changed = InterruptibleCondition()
        self._missed: dict[tuple[str, int], str] = {}

    def apply(self, request: LookAt, step: int) -> str:
        """Measure a look in ``step``; return what will be measured, as text.

        Raises
        ------
        ProbeError
            Reason why it cannot be done.
        """
        self.finish(step)
        self._check_room()
        asked = self._resolved(request, step)
        now = (one for one in self._asked if one.step >= step)  # others wait for a device alone
        same = next((one for one in now if one.module == asked.module), None)
        if same is None or same.samples < asked.samples:
            others = self._making_room([one for one in self._asked if one is not same])
            self._hand((*others, asked), step)
        names = ", ".join(tensor.tensor for tensor in asked.tensors)
        return f"looking at {names} of {asked.module} in step {step}"

    def at_rest(self, request: LookAt) -> str:
        """Look while nothing trains, by calling the model with its last inputs again.

        Return what was done, as text; "" if it cannot be, so that the next step is waited for.

        Raises
        ------
        ProbeError
            Invalid request, or no room.
        """
        self.check(request)
        self._check_room()
        latest, model_map = self._calls.latest, self._probes.model_map
        last = None if latest is None else latest.last_unchanged()
        module = model_map.modules.get("" if request.module == ROOT else request.module)
        if last is None or module is None:
            return ""
        try:
            tensors = tensors_at_rest(self._probes.model, module, last[1])
        except Exception:  # of the model: it is looked at in the next step
            return ""
        label = standard_place(request.module)
        copies = SampleCopies.of(last[0] + 1, tensors)
        if not copies.tensors:
            return ""
        why = f"computed at rest from the inputs of step {last[0]}, without gradients"
        kept = {(one.module, one.step) for one in looks_of(self._events(), dict)}
        if (label, copies.step) not in kept:
            self.keep_copies(copies, label, "rest", why)
            self._record.flush_soon()
        return f"looked at {label}, {why}"

    def keep_copies(self, copies: SampleCopies, module: str, prefix: str, why: str) -> None:
        """Record copied tensors as a look; the arrays have separate names."""
        if self._record.stopped:
            return
        facts, arrays, now_ms = {}, {}, time.time_ns() // 1_000_000
        for name, samples in copies.samples.items():
            stored = ARRAYS.stored(f"{prefix}_{name}", tuple(samples.shape))
            found = copies.tensors[name].facts
            # A keyword may be no name of an array, and a step may have been written already.
            with suppress(ProbeError, ValueError):
                variable = Variable(stored, "1", "a part of a tensor")
                arrays_of = self._record.arrays(variable, module, samples.shape)
                arrays_of.record(copies.step, now_ms, samples.numpy())
                if found is not None:
                    facts[name], arrays[name] = found, stored
        if facts:
            self.keep(module, copies.step, facts, arrays, why)

    def check(self, request: LookAt) -> None:
        """Raise a ProbeError for an invalid request; from any thread."""
        self._resolved(request, 0)

    def seen(self, module: str, step: int) -> tuple[dict[str, TensorFacts], dict[str, str]]:
        """Facts and arrays so far in a step that is not over."""
        for one in self._asked:
            if (one.module, one.step) == (module, step):
                return _seen(one)
        return {}, {}

    def finish(self, step: int) -> None:
        """Report the looks whose step was before this one, without waiting for a device.

        Between steps only. A look whose numbers are still on their way is reported at a later step.
        """
        if self._asked:  # asked at every step
            over = [one for one in self._asked if one.step < step]
            self._end([one for one in over if all(tensor.has_come for tensor in one.tensors)], step)

    @property
    def are_open(self) -> bool:
        """True if a look waits for its step, or for a device."""
        return bool(self._asked)

    def finish_all(self, step: int) -> None:
        """Report all looks whose step was before this one; waits for a device."""
        self._end([one for one in self._asked if one.step < step], step)

    def _end(self, over: Sequence[_OpenLook], step: int) -> None:
        if not over:
            return
        for one in over:
            self._tell(one)
        # Under the condition, so that no waiter misses the end between its check and its wait.
        with self._changed:
            self._hand(tuple(one for one in self._asked if one not in over), step)
            self._changed.notify_all()

    @property
    def asked(self) -> list[tuple[str, int]]:
        """Module and step of those whose step is not over."""
        return [(one.module, one.step) for one in self._asked]

    @property
    def missed(self) -> dict[tuple[str, int], str]:
        """Reasons of looks without result, by module and step."""
        return dict(self._missed)

    def wait(self, ticket: Ticket, module: str, timeout_s: float) -> bool:
        """Wait until the step of a look is over; False when it takes longer."""

        def is_over() -> bool:
            asked = (module, ticket.applied_step) in self.asked
            return ticket.state == "refused" or (ticket.state == "applied" and not asked)

        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not is_over() and time.monotonic() < deadline:
                self._changed.wait(TICK_S)  # a refusal wakes no thread
        return is_over()

    def _resolved(self, request: LookAt, step: int) -> _OpenLook:
        n = whole_number("samples", request.samples, 1, MOST_SAMPLES, QuantityError)
        model_map, found = self._probes.model_map, {}
        for tensor in [KeptTensor(name, n) for name in TENSORS]:
            quantity = tensor.quantity()
            try:
                probes = resolve(model_map, request.module, quantity, Steps([step])).probes
            except NotApplicableError:  # it has none
                continue
            if len(probes) > 1:
                raise QuantityError(f"look({request.module!r}): one module at a time")
            found[tensor] = probes[0]
        if not found:
            raise NotApplicableError(f"look({request.module!r}): there is nothing to look at")
        module = standard_place(next(iter(found.values())).place)
        return _OpenLook(module, step, n, [*found], [*found.values()], request.soon)

    def _check_room(self) -> None:
        if self._record.stopped:
            raise QuantityError(self._record.stopped)
        n_bytes = sum(one.nbytes for one in every_look_of(self._events(), dict))
        if n_bytes >= MOST_BYTES:
            raise QuantityError(
                f"the looks of this record take {n_bytes / 1e6:.1f} MB of it, and may take "
                f"{MOST_BYTES // 10**6} MB; another record takes more"
            )

    def _making_room(self, asked: Sequence[_OpenLook]) -> Sequence[_OpenLook]:
        """Return the pending looks with room for one more; of too many the first are dropped."""
        n_over = max(0, len(asked) + 1 - MOST_LOOKS)
        for one in asked[:n_over]:
            why = f"{MOST_LOOKS} others were asked for after it, and more are not kept"
            self._missed[one.module, one.step] = f"{one.module}: {why}"
        return asked[n_over:]

    def _hand(self, asked: tuple[_OpenLook, ...], step: int) -> None:
        self._asked = asked
        self._probes.measure_beside([probe for one in asked for probe in one.probes], step)

    def _tell(self, one: _OpenLook) -> None:
        """Record the result of a look, or why there is none."""
        seen, arrays = _seen(one)
        if not seen:
            errors = [probe.error or probe.gap for probe in one.probes if probe.error or probe.gap]
            why = errors[0] if errors else f"it was not called in step {one.step}"
            self._missed[one.module, one.step] = f"{one.module}: {why}"
            return
        self.keep(one.module, one.step, seen, arrays)
        if one.soon:
            self._record.flush_soon()

    def keep(
        self,
        module: str,
        step: int,
        seen: Mapping[str, TensorFacts],
        arrays: Mapping[str, str],
        why: str = "",
    ) -> None:
        """Record a look whose arrays are recorded, and why it was taken without a request."""
        told = f": {why}" if why else ""
        text = f"looked at {', '.join(seen)} of {module}{told}"
        self._record.event(step, LOOK, text, detail_of(module, seen, arrays, why))
        self._let_go(step)

    def _let_go(self, step: int) -> None:
        """Drop the oldest looks to make room, and record that."""
        kept = looks_of(self._events(), dict)
        for gone in kept[: max(0, len(kept) - MOST_LOOKS)]:
            text = f"the look at {gone.module} of step {gone.step} made room: {MOST_LOOKS} are kept"
            self._record.event(step, GONE, text, gone_detail(gone.module, gone.step))


def _seen(one: _OpenLook) -> tuple[dict[str, TensorFacts], dict[str, str]]:
    there = [tensor for tensor in one.tensors if tensor.facts is not None]
    facts = {tensor.tensor: tensor.facts for tensor in there if tensor.facts is not None}
    return facts, {tensor.tensor: tensor.stored for tensor in there}
