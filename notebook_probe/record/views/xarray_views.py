"""The views of a record's data, shared by all sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, overload

import numpy as np
import xarray as xr

from notebook_probe.checks import optional_ends
from notebook_probe.errors import NotApplicableError, UnknownNameError, shown_as
from notebook_probe.record.format.lookup import recorded_name
from notebook_probe.record.format.schema import NAMES, module_label
from notebook_probe.record.format.source import (
    ROOT,
    ArrayView,
    Source,
    StreamView,
    Thinned,
    Variable,
    VectorView,
)
from notebook_probe.record.formulas import formula_stream, is_formula
from notebook_probe.record.views import blobs, channels, joined
from notebook_probe.record.views.branches.branches import Branches
from notebook_probe.record.views.branches.latest_values import overlaid
from notebook_probe.record.views.chunked import (
    PREFERRED,
    ChunksLike,
    check_chunks,
    chunked,
    stored_chunks,
)
from notebook_probe.record.views.elements import Elements
from notebook_probe.record.views.kept_rows import kept_rows, streams_of
from notebook_probe.record.views.named_scalars import ByName
from notebook_probe.record.views.own_names import (
    OwnNames,
    logged_names,
    measured_of_model,
    own_names,
    with_own_names,
)
from notebook_probe.record.views.own_widths import seen_as
from notebook_probe.record.views.parts import JoinedStream, parts_of
from notebook_probe.record.views.thinning.minmax import minmax
from notebook_probe.record.views.thinning.zoom import between, has_series, thin_stream

__all__ = ["Layout", "RunSource", "Snapshot", "XarrayViews"]

Layout: TypeAlias = Literal["joined", "cube", "tree"]
LAYOUTS = "joined", "cube", "tree"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a source at one moment."""

    streams: Sequence[StreamView]
    """Streams of every branch, as stored."""
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
        streams = with_own_names(self._numbers(), measured_of_model(self.attrs))
        return streams, self.branches.history(self.vectors)

    @property
    def own_names(self) -> OwnNames:
        """The names under which logged series are read whose stored name another series has."""
        return own_names(self._numbers(), measured_of_model(self.attrs))

    @property
    def logged_of_steps(self) -> set[str]:
        """Stored names of what the loop logs in training steps."""
        return logged_names(self._numbers())[0]

    def _numbers(self) -> list[StreamView]:
        """Streams of numbers of the newest branch, as they are stored."""
        streams, named = map(self.branches.history, (self.streams, self.named))
        return [*streams, *map(ByName, named)]

    def streams_of(self, module: str, quantity: str) -> list[StreamView]:
        """Return the streams and vectors of the newest branch with a module's quantity."""
        (streams, vectors), ragged = self.history, self.branches.history(self.ragged)
        return streams_of([*streams, *vectors], ragged, module, quantity)

    @property
    def variables(self) -> Iterator[Variable]:
        """Variables of every stream."""
        every = (*self.streams, *self.vectors, *self.ragged, *self.blobs)
        return (variable for stream in every for variable in seen_as(stream))


class RunSource(Source, Protocol):
    """A run or an opened record: a source that is also read as a whole, at one moment."""

    def snapshot(self) -> Snapshot: ...


@shown_as("run")
class XarrayViews(ABC):
    """Base class of sources: everything derived from streams; each call sees one moment."""

    _chunks: ChunksLike | None = None
    """Chunks of `data` for dask; None for no dask."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the present state."""

    def recorded_name(self, quantity: str) -> str:
        """Return the recorded name of a quantity, which may be given by an alias.

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
        """All recorded data, dims (module, step), a variable per quantity; NaN = not measured.

        The streams of all schedules are joined on the union of their steps; vectors have their
        axis as a third dimension, per-module vectors have dims (element, step), of which
        ``data.sel(module="fc1")``, or one variable's ``sel``, has those of the module. Values are
        read on access. In a live run, the open step is included once its optimizer has stepped.
        """
        return self.to_xarray(chunks=self._chunks)

    @overload
    def to_xarray(
        self, layout: Literal["joined"] = "joined", *, chunks: ChunksLike | None = None
    ) -> xr.Dataset: ...
    @overload
    def to_xarray(
        self, layout: Literal["cube"], *, chunks: ChunksLike | None = None
    ) -> xr.DataArray: ...
    @overload
    def to_xarray(
        self, layout: Literal["tree"], *, chunks: ChunksLike | None = None
    ) -> xr.DataTree: ...
    def to_xarray(
        self, layout: Layout = "joined", *, chunks: ChunksLike | None = None
    ) -> xr.Dataset | xr.DataArray | xr.DataTree:
        """Return the recorded data in one of three layouts, optionally in dask chunks.

        Parameters
        ----------
        layout : "joined", "cube" or "tree"
            ``"joined"`` is `data`. ``"cube"`` has its numbers stacked, dims (module, quantity,
            step); select before loading. ``"tree"`` is an `xarray.DataTree` with a step axis
            for every schedule and branch: exact, nothing joined.
        chunks : dict, optional
            Sizes along dimensions, such as ``{"step": 10_000}``, for data that are larger than
            memory. Other dimensions are chunked as on disk, so that ``{}`` decodes every chunk
            once; quantities of different streams are then cut at different steps, which
            ``unify_chunks`` mends. None for no dask.

        Raises
        ------
        MissingExtraError
            dask is not installed: ``pip install 'notebook-probe[analysis]'``.
        UnknownNameError
            For another layout, or a dimension that is not recorded.
        NotApplicableError
            For chunks of a tree, as each group has its own step axis.

        Examples
        --------
        >>> run.to_xarray(chunks={}).weight_norm.mean("step").compute()  # doctest: +SKIP
        >>> run.to_xarray("cube").sel(module="fc1", quantity="grad_norm")  # doctest: +SKIP
        """
        if layout not in LAYOUTS:
            raise UnknownNameError(
                f"to_xarray({layout!r}): a layout is one of {', '.join(map(repr, LAYOUTS))}"
            )
        check_chunks(chunks)
        if layout == "tree":
            if chunks is not None:
                raise NotApplicableError(
                    "to_xarray('tree', chunks=...): each group has its own step axis; "
                    "chunk one of them, tree['every_1'].chunk(...)"
                )
            return self._tree()
        joint = self._unread() if chunks is None else chunked(self.aligned(), chunks)
        return joined.stack(joint) if layout == "cube" else joint

    def aligned(self) -> xr.Dataset:
        """Return the recorded data, unread; encodings have the chunks on disk."""
        now, parts = self._now()
        data = joined.join_parts(parts, now.modules).assign_attrs(now.attrs)
        for name, sizes in stored_chunks(parts, now.modules).items():
            data.variables[name].encoding[PREFERRED] = sizes
        return data

    def _unread(self) -> xr.Dataset:
        now, parts = self._now()
        return joined.join_parts(parts, now.modules).assign_attrs(now.attrs)

    def _now(self) -> tuple[Snapshot, list[JoinedStream]]:
        """Return the present state and its parts."""
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

    def _tree(self) -> xr.DataTree:
        now = self.snapshot()
        return joined.tree(now.streams, now.vectors, now.ragged, now.named)

    def series(self, module: str, quantity: str, *, kept: bool = False) -> xr.DataArray:
        """Return one quantity of one module over its measured steps, dims (step,).

        A quantity that begins with ``=`` is a formula of recorded series, such as ``= 1 -
        accuracy`` or ``= mean(grad_norm@"blocks.*")``, of the whole model ``""``.

        A vector has its axis, or its place in the module's vector, as a second dimension, an
        array its own. A histogram's edges are ``series.linear_bin_lo * series.linear_bin_width``.

        Parameters
        ----------
        kept : bool
            Return only the retained rows of a ``keep(n)`` schedule, evenly spaced: from n // 2 + 1
            to n, once n steps have passed. Other schedules return all rows.

        Raises
        ------
        UnknownNameError
            Nothing of that name is recorded; the message lists close ones.
        FormulaError
            A formula cannot be read, or has no value.
        """
        now = self.snapshot()
        if is_formula(quantity):
            stream = formula_stream(self.streams, quantity)
            return joined.series([stream], [ROOT], ROOT, quantity)
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
        """Return at most ``n_points`` points of a series of numbers, for a picture of it.

        The first, the last, the least and the greatest value are always among them. For a long
        range the pyramid is read, whose points are at the first step of a block that is at most as
        wide as four points; for a short range every value is returned unchanged.

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
        ValueError
            A ``start`` above ``stop``, or fewer than four points.
        """
        optional_ends(start, stop)
        now = self.snapshot()
        quantity = recorded_name(quantity, now.variables)
        streams, _ = now.history
        label = module_label(module)
        matching = [stream for stream in streams if has_series(stream, label, quantity)]
        # One stream can be thinned by its pyramid; several have to be joined first.
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
