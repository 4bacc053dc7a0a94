"""The Explorer: the panel as a widget, which users place and link by its traits."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import anywidget
import traitlets
from ipywidgets.widgets.trait_types import TypedTuple

from notebook_probe.alerts import Alert
from notebook_probe.errors import ClosedRunError
from notebook_probe.explorer.assets import css, esm
from notebook_probe.explorer.leaving import leaving, widget_lock

__all__ = ["Explorer"]

IN_A_NOTEBOOK = """
.jp-OutputArea-child:has(.nbp-panel):not(:has(.nbp-handed-on)) + .jp-OutputArea-child,
.jp-OutputArea-child:has(.nbp-panel) + * + .jp-OutputArea-child:has(.nbp-handed-on) {
  display: none;
}
/* nbclassic */
.output_area:has(.nbp-panel):not(:has(.nbp-handed-on)) + .output_area,
.output_area:has(.nbp-panel) + * + .output_area:has(.nbp-handed-on) {
  display: none;
}
.jp-OutputArea-child:has(.nbp-panel):has(~ .jp-OutputArea-child .widget-box .nbp-panel) {
  display: none;
}
"""
"""The static picture is right after the panel, for the time when there is no panel; and a panel
that the same cell shows in a box of widgets need not be shown above the box, too."""

LINKED = ("home", "series", "window", "step", "rows", "folds")
COMPARED = ("others", "ratio_to", "aligned", "grouped", "apart")


class Keeper(Protocol):
    """Owner of the widget; handles changes of traits and clicks.

    `Panel`, which imports this module, is one.
    """

    def shows(self, explorer: Explorer) -> bool: ...
    def show_once_in_a_cell(self) -> None: ...
    def to_html(self, path: str | os.PathLike[str]) -> Path: ...
    def check(self, name: str, value: object) -> object: ...
    def showing(self, alert: Alert) -> dict[str, object]: ...
    def choose(self, name: str, value: object) -> None: ...
    def receive(self, content: object) -> None: ...
    def close(self) -> None: ...


class Explorer(anywidget.AnyWidget):
    """The panel as a widget among others: in a VBox, a tab, or a Voilà page.

    `Run.explore` and `OpenedRun.explore` show and return it; ``run.explorer`` is the same widget,
    not shown. Its traits have the selection. They can be observed, linked and set; a click in the
    panel changes them a moment later, on a thread of the panel.

    Attributes
    ----------
    home : str
        Quantity of the heat map.
    series : tuple of (str, str)
        Module and quantity of each line that is drawn. The whole model, with the logged scalars, is
        ``""``; it reads as ``"(root)"``.
    window : (float, float) or None
        Steps that both plots show; None for all.
    step : int
        Step under the pointer, in either plot; setting it moves the cursor line.
    rows : tuple of str
        Modules in the heat map, with all below them; empty for all.
    folds : tuple of str
        Modules that have one row in the heat map, with all below them; `rows` are chosen among
        these.
    others : tuple of str
        Paths or URLs of the other runs, at most four.
    ratio_to : str
        Run by which the heat map is divided; empty for the values of this run.
    aligned : str
        ``"step"``, ``"time"``, ``"samples"``, ``"epochs"`` or ``"loss"``.
    grouped : bool
        True if the other runs are one group, with its mean and spread.
    apart : (float, int)
        Factor and number of rows beyond which a module counts as diverged.

    Examples
    --------
    >>> explorer = run.explorer  # doctest: +SKIP
    >>> at = ipywidgets.IntSlider(description="step", max=1000)  # doctest: +SKIP
    >>> ipywidgets.link((explorer, "step"), (at, "value"))  # doctest: +SKIP
    >>> ipywidgets.VBox([at, explorer])  # doctest: +SKIP
    """

    home = traitlets.Unicode()
    series = TypedTuple(traitlets.Tuple(traitlets.Unicode(), traitlets.Unicode()))
    window = traitlets.Tuple(
        traitlets.Float(), traitlets.Float(), default_value=None, allow_none=True
    )
    step = traitlets.Int()
    rows = TypedTuple(traitlets.Unicode())
    folds = TypedTuple(traitlets.Unicode())

    others = TypedTuple(traitlets.Unicode())
    ratio_to = traitlets.Unicode()
    aligned = traitlets.Unicode("step")
    grouped = traitlets.Bool(False)
    apart = traitlets.Tuple(traitlets.Float(), traitlets.Int(), default_value=(2.0, 10))

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    _own_id = traitlets.Unicode().tag(sync=True)
    _picture = traitlets.Unicode().tag(sync=True)
    _saved = traitlets.Unicode().tag(sync=True)

    def __init__(self, panel: Keeper, name: str) -> None:
        self._name = name
        self._panel = weakref.ref(panel)  # ipywidgets keeps every open widget alive
        self._followed: dict[str, object] = {
            name: self.trait_defaults(name) for name in (*LINKED, *COMPARED)
        }
        self._setting: tuple[int, str, object] | None = None
        with widget_lock:
            super().__init__(_esm=esm(), _css=css() + IN_A_NOTEBOOK)
            self._own_id = self.model_id  # views have no other way to know it
            self.on_msg(Explorer._arrived)

    def send(self, content: Any, buffers: Sequence[bytes | memoryview] | None = None) -> None:
        """Send a message to every view; nothing happens once the panel is closed."""
        with widget_lock:
            if not leaving.is_set():
                super().send(content, buffers)

    def keep(self, picture: str) -> None:
        """Pass a PNG in base64 to the views, which store it for a notebook that is opened again."""
        with widget_lock:
            if not leaving.is_set():
                self._picture = picture

    def keep_package(self, text: str) -> None:
        """Store the panel as packed by `Packer`, for a saved notebook."""
        with widget_lock:
            if leaving.is_set():
                return
            if text == self._saved:
                self.send_state("_saved")  # a notebook runner takes it up only in a cell
            self._saved = text

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the display data of the widget, and the text for readers without widgets."""
        data, metadata = self._repr_mimebundle_()  # type: ignore[misc]  # it has a view
        return {**data, "text/plain": "notebook_probe panel"}, metadata

    def show_alert(self, alert: Alert) -> None:
        """Show an alert in all views, as its button *show* does.

        Its series are added to the lines, the heat map shows the first of its quantities that two
        modules have, and the cursor moves to its step; the window moves too if needed.

        Raises
        ------
        UnknownNameError
            No series that the alert refers to is recorded any more.

        Examples
        --------
        >>> run.explorer.show_alert(run.alerts[-1])  # doctest: +SKIP
        """
        panel = self._panel()
        if panel is not None:
            for name, value in panel.showing(alert).items():
                setattr(self, name, value)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the contents of this panel into one HTML file; see `Run.to_html`.

        Raises
        ------
        ClosedRunError
            The panel is closed; `to_html` of the run, or of the opened record, needs no panel.
        """
        panel = self._panel()
        if panel is None:
            raise ClosedRunError(f"to_html({path!r}): {self!r} has ended; use to_html of the run")
        return panel.to_html(path)

    def close(self) -> None:
        """Remove the panel from page and kernel and leave its picture; calling it twice is fine."""
        panel = self._panel()
        if panel is not None and panel.shows(self):
            panel.close()
        else:
            self.remove()

    def remove(self) -> None:
        """Remove the widget and its layout from the page and the kernel."""
        with widget_lock:
            self.layout.close()
            super().close()

    @property
    def closed(self) -> bool:
        """True once the panel has ended; ``explore()`` makes a new one."""
        return self.comm is None or self.comm._closed

    def follow(self, **looked_at: object) -> None:
        """Set the traits to the selection of the panel.

        A trait that was set since, and has not arrived in the panel yet, keeps its value.
        """
        for name, value in looked_at.items():
            if value != self._followed[name]:
                self._followed[name] = value
                self._setting = threading.get_ident(), name, value
                try:
                    setattr(self, name, value)
                finally:
                    self._setting = None

    @traitlets.validate(*LINKED, *COMPARED)
    def _check(self, proposal: Any) -> object:
        panel = self._panel()
        name, value = proposal.trait.name, proposal.value
        if panel is not None and not self._is_following(name, value):
            return panel.check(name, value)
        return value

    @traitlets.observe(*LINKED, *COMPARED)
    def _chosen(self, change: Any) -> None:
        panel = self._panel()
        if panel is not None and not self._is_following(change.name, change.new):
            panel.choose(change.name, change.new)

    def _is_following(self, name: str, value: object) -> bool:
        """Return whether `follow` itself sets this, rather than an observer of the trait."""
        return self._setting == (threading.get_ident(), name, value)

    def _arrived(self, content: object, buffers: object) -> None:
        panel = self._panel()
        if panel is not None:
            panel.receive(content)

    def _ipython_display_(self) -> None:
        panel = self._panel()
        if panel is not None and panel.shows(self):
            panel.show_once_in_a_cell()
        else:
            print(f"{self!r}; explore() makes a new one")

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Explorer of {self._name!r}{', closed' if self.closed else ''}>"
