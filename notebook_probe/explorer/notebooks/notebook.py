"""What a panel needs of the notebook that it is shown in, and what is there without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from notebook_probe.explorer.notebooks.way import Way

__all__ = ["CellEnded", "NoNotebook", "Notebook", "Shown"]

CellEnded: TypeAlias = Callable[[BaseException | None], None]


class Shown(Protocol):
    """A widget that can be displayed."""

    def bundle(self) -> tuple[dict[str, Any], dict[str, Any]]: ...


class Notebook(Protocol):
    """Cells that run one after the other, and what they show."""

    way: Way
    """How clicks are answered while a cell runs."""

    @property
    def cell(self) -> str:
        """The running cell by the front end's own name for it; empty where it tells none."""
        ...

    @property
    def execution(self) -> int:
        """Which execution of a cell this is; later ones have higher numbers."""
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
        self.way = Way("no kernel")

    def display(self, widget: Shown) -> None: ...

    def on_cell_end(self, callback: CellEnded) -> Callable[[], None]:
        return lambda: None
