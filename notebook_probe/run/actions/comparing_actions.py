"""Comparison of a run with good ones, which also works without torch."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Protocol

from notebook_probe.compare.reference import (
    ReferenceDifferences,
    References,
    ReferenceSearch,
    opened_references,
)
from notebook_probe.errors import NotApplicableError, shown_as
from notebook_probe.record.format.notes import REFERENCE
from notebook_probe.record.format.source import Source
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["ComparingActions", "places_of_references"]


def places_of_references(source: Source) -> list[str]:
    """Return the locations of the references that a record names."""
    details = [event.detail for event in source.events if event.kind == REFERENCE]
    return json.loads(details[-1])["runs"] if details else []


class _WithReferences(RunSource, Protocol):
    def _known_references(self) -> Sequence[RunSource]: ...


@shown_as("run")
class ComparingActions:
    """Methods of live and opened runs that compare them with others."""

    def _known_references(self: RunSource) -> Sequence[RunSource]:
        """Return the references that the run was begun with, as its record names them."""
        places = places_of_references(self)
        return opened_references(places, self.location) if places else ()

    def find_differences(
        self: _WithReferences,
        reference: References | None = None,
        *,
        quantities: Collection[str] | None = None,
        factor: float | None = None,
    ) -> ReferenceDifferences:
        """Compare the run with one to four good ones; list where it differs, the earliest first.

        Steps are compared with equal steps, or with the last measured one while it is valid. With
        three or four references, a module differs if it is outside the 99 % prediction interval of
        one more seed, and above twice or below half their mean. One or two references do not show
        the spread of seeds, so the ratio to each of them must exceed 2 (weights) to 10 (gradients).
        The difference must last ten steps and at least three rows.

        Parameters
        ----------
        reference : path, pattern, run, or sequence of these, optional
            Good runs, such as ``"runs/good-*.zarr"``, opened records, or a table of
            `notebook_probe.runs`. By default the references of `watch`.
        quantities : collection of str, optional
            By default the loss and all quantities that are measured of the model.
        factor : float, optional
            Smallest ratio that counts as a difference, above 1; replaces the default ratios.

        Returns
        -------
        ReferenceDifferences
            A sequence of differences, shown as text or as a table, which also says what could not
            be compared: for example a quantity with a damaged chunk, which it names.

        Raises
        ------
        NotApplicableError
            There is no reference run.
        RecordFormatError
            A location has no record.
        ValueError
            For a ``factor`` of 1 or less.

        Warns
        -----
        RecordWarning
            A record cannot be read, or there are more than four.

        Examples
        --------
        >>> run.find_differences("runs/good-*.zarr")  # doctest: +SKIP
        Differs from 4 reference runs first at step 0: fc2, weight_norm ×4.9 (22.8 against 4.62)
          fc2: output_norm ×3.8 (25.4 against 6.4) from step 0 on
        """
        if reference is not None:
            references = opened_references(reference, self.location)
        else:
            references = tuple(self._known_references())
        if not references:
            raise NotApplicableError(
                "find_differences(): no good run is known; name some, as "
                "find_differences('runs/good-*.zarr'), or watch(..., reference=...)"
            )
        return ReferenceSearch(self, references, quantities, factor).found()
