"""Interface between a panel and its notebook, and the stand-in for scripts without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from notebook_probe.explorer.notebooks.way import MessageWay

__all__ = ["CellEnded", "NoNotebook", "Notebook", "Shown"]

CellEnded: TypeAlias = Callable[[BaseException | None], None]


class Shown(Protocol):
    """A widget that can be displayed.

    `Explorer`, which imports this module, is one.
    """

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]: ...


class Notebook(Protocol):
    """A notebook: cells that run one after the other, and their outputs."""

    way: MessageWay
    """Way in which clicks are answered while a cell runs."""

    @property
    def cell(self) -> str:
        """The running cell by the front end's own name for it; empty where it tells none."""
        ...

    @property
    def execution(self) -> int:
        """Number of the cell's execution; later ones have higher numbers."""
        ...

    def display(self, widget: Shown) -> None:
        """Show a widget below the running cell, at once."""
        ...

    def on_cell_end(self, callback: CellEnded) -> Callable[[], None]:
        """Call ``callback`` after every cell, with its error; returns its removal."""
        ...


class NoNotebook:
    """A plain script, or a terminal."""

    cell = ""
    execution = 0

    def __init__(self) -> None:
        self.way = MessageWay("no kernel")

    def display(self, widget: Shown) -> None: ...

    def on_cell_end(self, callback: CellEnded) -> Callable[[], None]:
        return lambda: None
