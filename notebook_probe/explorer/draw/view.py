"""Registry of views: the panel's own plots, and views registered by users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from notebook_probe.errors import ViewError
from notebook_probe.explorer.draw.returned import frame_of
from notebook_probe.explorer.draw.what_has_values import COUNTS
from notebook_probe.explorer.messages.defaults import Defaults
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.schema import is_of_loop
from notebook_probe.record.format.source import Source
from notebook_probe.registry import Registry

__all__ = [
    "VIEWS",
    "Draw",
    "OwnView",
    "Painter",
    "PanelPlot",
    "View",
    "fresh_selection",
    "panel_plot",
    "view",
]

Draw: TypeAlias = Callable[[Source, PanelSelection], object]
"""Function that returns a matplotlib ``Figure``, a dict for an ES module, or None."""


class Painter(Protocol):
    """Make the frames of one view for one panel; may keep caches, as it lives as long."""

    def frame(
        self, source: Source, selection: PanelSelection, width: int, pixel_ratio: float = 1.0
    ) -> Frame | None:
        """Return the frame to draw now; None if there is nothing to send.

        Parameters
        ----------
        width : int
            Width on the screen, in CSS pixels.
        pixel_ratio : float
            Screen pixels per CSS pixel, for views that paint pixels.
        """


@dataclass(frozen=True, slots=True, eq=False)
class View(ABC):
    """A registered view of a source."""

    every_refresh: ClassVar[bool]
    """True for a view that is drawn at every refresh, so its cost must not grow with the run.

    Others are drawn in a thread, at their own pace.
    """

    name: str
    origin: str
    """Module and name of the registered object; a cell that is run again defines the same."""
    summary: str
    """One line on what the view shows; may be empty."""
    esm: str
    """ES module that draws its data in the browser; empty where that knows how."""

    @abstractmethod
    def painter(self) -> Painter:
        """Return a new painter, for one panel."""


@dataclass(frozen=True, slots=True, eq=False)
class PanelPlot(View):
    """Painted by the panel's own code: its frames are messages of that name."""

    every_refresh: ClassVar[bool] = True
    make: Callable[[], Painter]

    def painter(self) -> Painter:
        return self.make()


@dataclass(frozen=True, slots=True, eq=False)
class OwnView(View):
    """A view registered with `view`; calling it draws it."""

    every_refresh: ClassVar[bool] = False
    make: Callable[[], Draw]
    """Factory of the drawing function, called once per panel."""

    def painter(self) -> Painter:
        return _Drawn(self, self.make())

    def __call__(self, source: Source, selection: PanelSelection | None = None) -> object:
        """Draw the view of a run without a panel, by default as a new panel would."""
        return self.make()(source, selection or fresh_selection(source))


@dataclass(frozen=True, slots=True)
class _Drawn:
    view: OwnView
    draw: Draw

    def frame(
        self, source: Source, selection: PanelSelection, width: int, pixel_ratio: float = 1.0
    ) -> Frame:
        returned = self.draw(source, selection)
        return frame_of(returned, self.view.name, self.view.esm, width, pixel_ratio)


def fresh_selection(source: Source) -> PanelSelection:
    """Return the selection of a new panel."""
    streams = source.streams.values()
    recorded = {v.name: s.modules for s in streams for v in s.variables}
    logged = [v.name for s in streams for v in s.variables if is_of_loop(v)]
    return Defaults().fill(PanelSelection(), recorded, logged, COUNTS)


def _defined_again(old: View, new: View) -> bool:
    """Return whether both come from the same cell, run twice."""
    return old.origin == new.origin


class Views(Registry[View]):
    """Registry of views; those that other packages announce are checked like the rest."""

    def add(self, name: str, member: View, aliases: Sequence[str] = ()) -> None:
        if not isinstance(member, View):
            raise ViewError(f"view {name!r} is {member!r}; @nbp.view({name!r}) makes one of it")
        super().add(name, member, aliases)


VIEWS = Views("view", "notebook_probe.views", same=_defined_again)
"""Registry of everything that panels draw."""

Plot = TypeVar("Plot", bound=Callable[[], Painter])


def panel_plot(name: str) -> Callable[[Plot], Plot]:
    """Register a class whose frames are messages ``name``, which the panel's own code paints."""

    def register(made: Plot) -> Plot:
        VIEWS.add(name, PanelPlot(name, _origin(made), _summary(made), "", made))
        return made

    return register


def view(name: str, *, esm: str | Path = "") -> Callable[[Draw | type], OwnView]:
    """Draw a custom view in every panel, live: a figure, or by a small ES module.

    The function is called with the run (or opened record) and the panel's selection, in a separate
    thread: with at most about 3 % of a core while training runs, at once when the selection changes
    and when training pauses, and not while the view is hidden. An exception is shown in its place.
    Run the cell again, and the new function replaces the old one.

    Parameters
    ----------
    name : str
        Shown above it.
    esm : str or Path, optional
        Text of an ES module, or the file that holds it: ``export default { draw(element, data) }``.

    Returns
    -------
    callable
        Decorator of ``draw(source, selection)``, which returns one of:

        * a matplotlib ``Figure``: drawn as wide as the panel, in its own ratio of height to width;
        * a dict, for ``draw`` of the ES module: what JSON knows, and numpy arrays, which arrive as
          typed arrays with a ``shape``;
        * None: there is nothing to draw yet.

        ``source.data`` is an `xarray.Dataset`; ``selection.home`` names the quantity of the heat
        map, ``selection.series`` are (module, quantity) of the lines, ``selection.window`` is the
        range of steps or None. A class is made once for each panel, and called.

    Raises
    ------
    ViewError
        No name, nothing that can be called, or a file that cannot be read.
    DuplicateNameError
        Another view has this name.

    Examples
    --------
    >>> import notebook_probe as nbp
    >>> from matplotlib.figure import Figure
    >>> @nbp.view("depth")
    ... def depth(source, selection):
    ...     \"\"\"Gradient norm over depth, now.\"\"\"
    ...     figure = Figure(figsize=(6, 2.4), layout="constrained")
    ...     last = source.data[selection.home].isel(step=-1).dropna("module")
    ...     figure.subplots().semilogy(last.module, last, "o-")
    ...     return figure
    """
    if not isinstance(name, str) or not name.strip():
        raise ViewError(f"view({name!r}): a view needs a name, as in @nbp.view('depth')")
    text = _esm_text(esm)

    def register(draw: Draw | type) -> OwnView:
        if not callable(draw):
            raise ViewError(f"view {name!r} is {draw!r}; a function of (source, selection) draws")
        made = OwnView(name, _origin(draw), _summary(draw), text, _maker(draw))
        VIEWS.add(name, made)
        return made

    return register


def _maker(draw: Any) -> Callable[[], Draw]:
    return draw if isinstance(draw, type) else lambda: draw


def _origin(registered: Any) -> str:
    kind = registered if hasattr(registered, "__qualname__") else type(registered)
    return f"{kind.__module__}.{kind.__qualname__}"


def _summary(draw: Any) -> str:
    return (getdoc(draw) or "").strip().partition("\n")[0]


def _esm_text(esm: str | Path) -> str:
    if isinstance(esm, str):
        return esm
    try:
        return Path(esm).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, TypeError) as error:
        raise ViewError(f"esm={esm!r}: text of an ES module or a Path to one; {error}") from None
