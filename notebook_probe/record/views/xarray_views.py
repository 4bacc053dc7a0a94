"""The ways to look at a record, written once for whoever holds one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.record.format.lookup import recorded_name
from notebook_probe.record.format.schema import NAMES, module_label
from notebook_probe.record.format.source import (
    ArrayView,
    StreamView,
    Thinned,
    Variable,
    VectorView,
)
from notebook_probe.record.views import blobs, channels, joined
from notebook_probe.record.views.branches.branches import Branches
from notebook_probe.record.views.branches.overlaid import overlaid
from notebook_probe.record.views.by_name import ByName
from notebook_probe.record.views.chunked import (
    PREFERRED,
    ChunksLike,
    check_chunks,
    chunked,
    stored_chunks,
)
from notebook_probe.record.views.elements import Elements
from notebook_probe.record.views.kept import kept_rows, streams_of
from notebook_probe.record.views.own_widths import seen_as
from notebook_probe.record.views.parts import Part, parts_of
from notebook_probe.record.views.thinning.minmax import minmax
from notebook_probe.record.views.thinning.zoom import between, has_series, thin_stream

__all__ = ["Snapshot", "XarrayViews"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a source holds now."""

    streams: Sequence[StreamView]
    """As they lie in the record, those of every branch."""
    vectors: Sequence[VectorView]
    modules: Sequence[str]
    """Names in definition order."""
    attrs: Mapping[str, Any]
    branches: Branches
    ragged: Sequence[StreamView] = ()
    """Vectors of every module's own length; their columns are elements."""
    blobs: Sequence[ArrayView] = ()
    named: Sequence[StreamView] = ()
    """Scalars that were logged under many names; their columns are the names."""

    @property
    def history(self) -> tuple[list[StreamView], list[VectorView]]:
        """Streams and vectors of the newest branch, what came before it included."""
        streams, named = map(self.branches.history, (self.streams, self.named))
        return [*streams, *map(ByName, named)], self.branches.history(self.vectors)

    def streams_of(self, module: str, quantity: str) -> list[StreamView]:
        """Streams and vectors of the newest branch in which a module's quantity may lie."""
        (streams, vectors), ragged = self.history, self.branches.history(self.ragged)
        return streams_of([*streams, *vectors], ragged, module, quantity)

    @property
    def variables(self) -> Iterator[Variable]:
        """Of every stream."""
        every = (*self.streams, *self.vectors, *self.ragged, *self.blobs)
        return (variable for stream in every for variable in seen_as(stream))


class XarrayViews(ABC):
    """Everything a Source derives from its streams; each look is of one moment."""

    _chunks: ChunksLike | None = None
    """How `data` is cut for dask; None for no dask."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """What there is to look at now."""

    def recorded_name(self, quantity: str) -> str:
        """The name under which a quantity is recorded that may be called by an alias.

        Examples
        --------
        >>> run.recorded_name("RankMe")  # doctest: +SKIP
        'effective_rank'
        """
        return recorded_name(quantity, self.snapshot().variables)

    @property
    def streams(self) -> Mapping[str, StreamView]:
        """Streams of numbers, by name; of two that share one, the second by its path."""
        found: dict[str, StreamView] = {}
        for view in overlaid(self.snapshot().history[0]):
            found[f"{NAMES}/{view.name}" if view.name in found else view.name] = view
        return found

    @property
    def vectors(self) -> Mapping[str, VectorView]:
        """Streams of vectors, by path: ``"hist/every_1"``."""
        return {f"{view.axis.group}/{view.name}": view for view in self.snapshot().history[1]}

    @property
    def elements(self) -> Mapping[str, StreamView]:
        """Streams of vectors of every kind, a column for each element: ``conv1[3/64]``."""
        now = self.snapshot()
        ragged = now.branches.history(now.ragged)
        own = {f"ragged/{view.name}": view for view in ragged}
        shared = {f"{view.axis.group}/{view.name}": Elements(view) for view in now.history[1]}
        return {**shared, **own}

    @property
    def data(self) -> xr.Dataset:
        """Everything recorded, dims (module, step), a variable per quantity; NaN = not measured.

        The streams of all schedules are joined on the union of their steps; vectors have their
        axis as a third dimension, those of every module's own length dims (element, step), of which
        ``data.sel(module="fc1")``, or one variable's ``sel``, has those of the module. Values are
        read where they are looked at. Of a live run, the open step is part of it once its optimizer
        has stepped.
        """
        return self._unread() if self._chunks is None else self.dataset(self._chunks)

    def dataset(self, chunks: ChunksLike | None = None) -> xr.Dataset:
        """`data`, on request in chunks of dask: larger than memory, and computed in parallel.

        Parameters
        ----------
        chunks : dict, optional
            Sizes along dimensions, such as ``{"step": 10_000}``. Where none is named a quantity is
            cut as it is on disk, so that ``{}`` decodes every chunk once; quantities of different
            streams are then cut at different steps, which ``unify_chunks`` mends. None for no dask.

        Raises
        ------
        MissingExtraError
            dask is not installed: ``pip install 'notebook-probe[analysis]'``.
        UnknownNameError
            For a dimension that is not recorded.

        Examples
        --------
        >>> run.dataset(chunks={}).weight_norm.mean("step").compute()  # doctest: +SKIP
        """
        check_chunks(chunks)
        if chunks is None:
            return self._unread()
        return chunked(self.aligned(), chunks)

    def aligned(self) -> xr.Dataset:
        """What is recorded, unread; the encoding of each variable says how it is cut on disk."""
        now, parts = self._now()
        data = joined.join_parts(parts, now.modules).assign_attrs(now.attrs)
        for name, sizes in stored_chunks(parts, now.modules).items():
            data.variables[name].encoding[PREFERRED] = sizes
        return data

    def _unread(self) -> xr.Dataset:
        now, parts = self._now()
        return joined.join_parts(parts, now.modules).assign_attrs(now.attrs)

    def _now(self) -> tuple[Snapshot, list[Part]]:
        """What there is, as long as it is."""
        now = self.snapshot()
        ragged = now.branches.history(now.ragged)
        return now, parts_of(*now.history, ragged)

    @property
    def blobs(self) -> Mapping[str, Mapping[str, xr.DataArray]]:
        """Arrays of every module's own shape, such as images: ``blobs[quantity][module]``.

        Each has dims (step, dim_0, ...), and is read where it is looked at.
        """
        now = self.snapshot()
        return blobs.by_quantity(now.blobs, now.branches)

    @property
    def cube(self) -> xr.DataArray:
        """Numbers of ``data`` stacked: dims (module, quantity, step); select before loading."""
        return joined.stack(self._unread())

    @property
    def tree(self) -> xr.DataTree:
        """Every schedule's own step axis, of every branch, exact, nothing joined."""
        now = self.snapshot()
        return joined.tree(now.streams, now.vectors, now.ragged, now.named)

    def series(self, module: str, quantity: str, *, kept: bool = False) -> xr.DataArray:
        """One quantity of one module over the steps at which it was measured, dims (step,).

        A vector has its axis, or its place in the module's vector, as a second dimension, an
        array its own. A histogram's edges are ``series.linear_bin_lo * series.linear_bin_width``.

        Parameters
        ----------
        kept : bool
            Of what was measured on ``keep(n)`` only as many rows as that keeps, evenly spaced:
            from n // 2 + 1 to n, once n steps have passed. Of other schedules all.

        Raises
        ------
        UnknownNameError
            Nothing of that name is recorded; the message lists close ones.
        """
        now = self.snapshot()
        quantity, label = recorded_name(quantity, now.variables), module_label(module)
        column = self._series(now, label, quantity)
        return kept_rows(column, now.streams_of(label, quantity)) if kept else column

    @staticmethod
    def _series(now: Snapshot, label: str, quantity: str) -> xr.DataArray:
        ragged = now.branches.history(now.ragged)
        if quantity in (arrays := blobs.by_quantity(now.blobs, now.branches)):
            return blobs.one(arrays, label, quantity)
        if any(one.name == quantity for stream in ragged for one in stream.variables):
            return channels.series(ragged, label, quantity)
        streams, vectors = now.history
        return joined.series(streams, now.modules, label, quantity, vectors)

    def thinned(
        self,
        module: str,
        quantity: str,
        start: float | None = None,
        stop: float | None = None,
        n_points: int = 1400,
    ) -> Thinned:
        """At most ``n_points`` points of a series of numbers, for a picture of it.

        The first, the last, the least and the greatest value are always among them. Of a long
        range the pyramid is read, whose points are at the first step of a block that is at most as
        wide as four points; where the range is short enough every value comes back as it is.

        Parameters
        ----------
        start, stop : float, optional
            Steps from ``start`` up to but not including ``stop``; all by default.
        n_points : int
            At least 4; two per pixel lose nothing that can be seen.

        Returns
        -------
        Thinned
            Points ``x`` (steps) and ``y``, and ``nonfinite``: every step whose value is not finite.

        Raises
        ------
        UnknownNameError
            Nothing of that name is recorded; the message lists close ones.
        """
        now = self.snapshot()
        quantity = recorded_name(quantity, now.variables)
        streams, _ = now.history
        label = module_label(module)
        matching = [stream for stream in streams if has_series(stream, label, quantity)]
        if len(matching) == 1:
            return thin_stream(
                matching[0], label, quantity, *between(matching[0], start, stop), n_points
            )
        column = joined.series(streams, now.modules, module, quantity)
        low, high = (
            None if end is None else np.searchsorted(column.step, end) for end in (start, stop)
        )
        column = column[low:high]
        return minmax(column.step, column, n_points)
