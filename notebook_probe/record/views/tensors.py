"""Every module's tensors of a record, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import xarray as xr

from notebook_probe.record.format.elements import read_element
from notebook_probe.record.views import blobs, channels, joined
from notebook_probe.record.views.selection import Selected
from notebook_probe.record.views.xarray_views import Snapshot

__all__ = ["tensors"]


def tensors(now: Snapshot, selection: Selected) -> Iterator[tuple[str, str, xr.DataArray]]:
    """Yield quantity, module and array with dims (step, ...), for the selection.

    All are unread, except per-module vectors, of which one module is read at a time.
    """
    streams, vectors = now.history
    data = joined.join(streams, now.modules, vectors)
    for name in (str(name) for name in data.data_vars if name in selection.quantities):
        for module in data["module"].to_numpy().tolist():
            if module in selection.modules:
                yield name, module, data[name].sel(module=module)
    ragged = now.branches.history(now.ragged)
    names = dict.fromkeys(one.name for view in ragged for one in selection.variables_of(view))
    for name in names:
        matching = [view for view in ragged if any(one.name == name for one in view.variables)]
        labels = (label for view in matching for label in selection.elements_of(view))
        for module in dict.fromkeys(read_element(label)[0] for label in labels):
            yield name, module, channels.series(ragged, module, name)
    for name, arrays in blobs.by_quantity(now.blobs, now.branches).items():
        for module in arrays:
            if name in selection.quantities and module in selection.modules:
                yield name, module, arrays[module]
