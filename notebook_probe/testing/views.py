"""Tests that apply to every view, also users' own."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, ClassVar

from torch import Tensor

from notebook_probe.explorer.draw.view import VIEWS, View, fresh_selection
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch
from notebook_probe.testing.cases import CASES, Case, train

__all__ = ["ViewSuite"]

WIDTHS = (240, 1000)
"""Widths of a narrow cell and a wide one, in CSS pixels."""


class ViewSuite:
    """Tests that every registered view passes: inherit it, and say which views are meant.

    Attributes
    ----------
    views : sequence of View or str
    case : Case
        The model that is trained; each view has to draw something of it.
    probes : sequence of str
        Presets to measure, as for `watch`.
    steps : int
        Number of training steps.

    Examples
    --------
    >>> class TestDepth(ViewSuite):
    ...     views = ("depth",)
    """

    views: ClassVar[Sequence[View | str]] = ()
    case: ClassVar[Case] = CASES["convolution"]
    probes: ClassVar[Sequence[str]] = ("default",)
    steps: ClassVar[int] = 10

    def test_it_says_what_it_shows(self) -> None:
        for view in self._all():
            assert view.summary, f"{view.name} has no docstring"

    def test_it_draws_a_run(self) -> None:
        with self._trained() as run:
            for view in self._all():
                for width in WIDTHS:
                    message, buffers = _drawn(view, run, _selection(run), width)
                    assert message["form"] != "nothing", f"{view.name} draws nothing"
                    json.dumps(message, allow_nan=False)
                    assert all(buffers), f"{view.name} draws an empty picture"

    def test_it_draws_whatever_is_chosen(self) -> None:
        with self._trained() as run:
            for view in self._all():
                for selection in _choices(run):
                    _drawn(view, run, selection)

    def test_it_draws_a_run_of_one_step(self) -> None:
        with self._trained(self.case.batch(0)) as run:
            for view in self._all():
                _drawn(view, run, _selection(run))

    def test_it_draws_numbers_that_are_not_finite(self) -> None:
        usual = self.case.batch(0)
        with self._trained(usual, usual * math.inf, usual * math.nan, usual) as run:
            run.log(infinite=math.inf)
            for view in self._all():
                for selection in _choices(run):
                    _drawn(view, run, selection)

    def test_it_changes_nothing_that_was_recorded(self) -> None:
        with self._trained() as run:
            before = run.data.load().copy(deep=True)
            for view in self._all():
                _drawn(view, run, _selection(run))
                assert run.data.load().identical(before), f"{view.name} writes into the record"

    def test_it_shows_the_same_of_the_same(self) -> None:
        with self._trained() as run:
            for view in self._all():
                first, again = (_drawn(view, run, _selection(run)) for _ in range(2))
                assert first == again, (
                    f"{view.name} depends on more than the run and what is chosen"
                )

    def test_it_is_drawn_in_a_thread_of_its_own(self) -> None:
        with self._trained() as run:
            for view in self._all():
                frames: list[object] = []
                thread = Thread(target=_draw_into, args=(frames, view, run, _selection(run)))
                thread.start()
                thread.join()
                assert frames, f"{view.name} raises outside the main thread"

    def test_it_leaves_no_figure_open(self) -> None:
        with self._trained() as run:
            for view in self._all():
                before = _open_figures()
                _drawn(view, run, _selection(run))
                assert _open_figures() == before, f"{view.name} leaves figures open in pyplot"

    @classmethod
    def _all(cls) -> list[View]:
        assert cls.views, f"{cls.__name__}.views names none"
        return [given if isinstance(given, View) else VIEWS[given] for given in cls.views]

    @classmethod
    @contextmanager
    def _trained(cls, *batches: Tensor) -> Iterator[Run]:
        """Yield a run of these or the usual batches, with a temporary record."""
        model = cls.case.made()
        with TemporaryDirectory() as folder, watch(model, store=folder, probes=cls.probes) as run:
            train(model, batches or map(cls.case.batch, range(cls.steps)), run)
            yield run


def _drawn(
    view: View, run: Run, selection: PanelSelection, width: int = WIDTHS[0]
) -> tuple[Mapping[str, Any], list[bytes]]:
    frame = view.painter().frame(run, selection, width)
    assert frame is not None, f"{view.name} sends nothing"
    return frame[0], [bytes(buffer) for buffer in frame[1]]


def _draw_into(frames: list[object], view: View, run: Run, selection: PanelSelection) -> None:
    frames.append(_drawn(view, run, selection))


def _selection(run: Run) -> PanelSelection:
    """Return the initial selection of a panel, with lines."""
    fresh = fresh_selection(run)
    return fresh.with_series(*((row.name, fresh.home) for row in run.modules if row.n_own_params))


def _choices(run: Run) -> list[PanelSelection]:
    """Every quantity, all steps, some, and none that were trained; with lines and without."""
    first = _selection(run)
    numbers = [one.name for stream in run.streams.values() for one in stream.variables]
    return [
        first,
        first.without(*first.series),
        replace(first, window=(1.0, 2.0)),
        replace(first, window=(1e6, 2e6)),
        replace(first, log_heat=False, log_y=False, x_axis="time"),
        *(PanelSelection(name) for name in dict.fromkeys(numbers)),
    ]


def _open_figures() -> list[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return [] if pyplot is None else list(pyplot.get_fignums())
