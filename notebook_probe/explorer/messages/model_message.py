"""Message about the model: its modules, the quantities, and which fit where."""

from __future__ import annotations

from collections.abc import Sequence

from notebook_probe.explorer.messages.axis_entries import axis_order, in_order, is_call, owner_of
from notebook_probe.explorer.messages.catalogue import PanelCatalogue
from notebook_probe.explorer.messages.wire import VERSION, ModelMessage, QuantityRow
from notebook_probe.record.format.source import ModuleRow, Source
from notebook_probe.run.attach.requests import CALL_KIND, PARAMETER_KIND, Fitting
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import QuantityInfo

__all__ = ["ModelMessages"]

_NOTHING = Fitting({}, {})


class ModelMessages:
    """Messages about the model, sent when a view does not have them yet."""

    def __init__(
        self, source: Source, controls: Controls | None, catalogue: PanelCatalogue
    ) -> None:
        self._source, self._controls, self._catalogue = source, controls, catalogue
        self._key: object = None
        self._entries_key: object = None
        self._entries: list[tuple[str, str]] = []
        self._fitting_key: object = None
        self._fitting = _NOTHING

    def forget(self) -> None:
        """Send the whole model next: a new view has nothing."""
        self._key = None

    def message(self, attached: Sequence[tuple[str, str, str]]) -> ModelMessage | None:
        """Return the module table and the quantities; None when the views have them already.

        Parameters
        ----------
        attached : sequence of (module, quantity, schedule)
            A probe's place may be a parameter, which has a row only then.
        """
        modules, quantities = self._source.modules, self._catalogue.rows
        entries, names = self._entries_now(attached), [row.name for row in quantities]
        if (modules, entries, names) == self._key:
            return None
        self._key = (modules, entries, names)
        fitting = self._fitting_now(names)
        return {
            "v": VERSION,
            "type": "model",
            "name": self._source.name,
            "location": self._source.location,
            "live": self._controls is not None,
            "modules": [
                (row.name, row.class_name, row.n_params, row.n_own_params, row.parent)
                for row in modules
            ],
            "entries": entries,
            "kinds": _kinds(modules, entries, fitting),
            "quantities": [_quantity_row(row, fitting) for row in quantities],
        }

    def _entries_now(self, attached: Sequence[tuple[str, str, str]]) -> list[tuple[str, str]]:
        """Return entries that are not modules but have values or a probe, each with its module."""
        streams = [stream.modules for stream in self._source.streams.values()]
        key = (self._source.modules, streams, attached)
        if key != self._entries_key:
            self._entries_key = key
            table = {row.name: None for row in self._source.modules}
            names = [*axis_order(self._source), *(module for module, _, _ in attached)]
            self._entries = [
                (name, owner_of(name, table))
                for name in in_order([*table], names)
                if name not in table
            ]
        return self._entries

    def _fitting_now(self, names: Sequence[str]) -> Fitting:
        """Return what fits where; computed once per change of the modules or the quantities."""
        key = (self._source.modules, names)
        if self._controls is not None and key != self._fitting_key:
            self._fitting_key, self._fitting = key, self._controls.fitting()
        return self._fitting


def _kinds(
    modules: Sequence[ModuleRow], entries: Sequence[tuple[str, str]], fitting: Fitting
) -> list[int]:
    if not fitting.kinds:
        return []
    of_modules = [fitting.kinds.get(row.name, PARAMETER_KIND) for row in modules]
    return of_modules + [CALL_KIND if is_call(name) else PARAMETER_KIND for name, _ in entries]


def _quantity_row(row: QuantityInfo, fitting: Fitting) -> QuantityRow:
    return {
        "name": row.name,
        "summary": row.summary,
        "needs": list(row.needs),
        "units": row.units,
        "value": row.value,
        "question": row.question,
        "topic": row.topic,
        "formula": row.formula,
        "aliases": list(row.aliases),
        "every_step": row.reads_every_step,
        "usual": row.usual,
        "misfits": list(fitting.misfits.get(row.name, ())),
    }
