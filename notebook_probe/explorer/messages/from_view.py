"""The messages from a panel's views to the kernel, one typed dictionary each; see `wire`."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from notebook_probe.explorer.messages.wire import SelectionMessage

__all__ = [
    "Ack",
    "AttachClick",
    "BudgetClick",
    "Click",
    "CompiledClick",
    "ControlClick",
    "DetachClick",
    "ExportClick",
    "FoldClick",
    "FromView",
    "Hello",
    "Moved",
    "Pointed",
    "Viewport",
    "Visible",
]


class Hello(TypedDict):
    """A view has appeared and knows nothing yet."""

    v: int
    type: Literal["hello"]
    view: str
    """Random id of the view; the same in all its messages."""


class Visible(TypedDict):
    """Visibility of a view."""

    v: int
    type: Literal["visible"]
    view: str
    visible: bool
    """document.hidden, element off screen or removed -> False."""


class Viewport(TypedDict):
    """Widths of a view's plots; sent when they change."""

    v: int
    type: Literal["viewport"]
    view: str
    widths: dict[str, int]
    """CSS width of each visible plot, by name; folded plots are missing."""
    pixel_ratio: float
    """Pixels of the screen per CSS pixel."""


class Ack(TypedDict):
    """Frames have been painted, so that the next may come."""

    v: int
    type: Literal["ack"]
    view: str
    painted: dict[str, int]
    """Name of a drawing to the last of its frames that was painted."""


class AttachClick(TypedDict):
    """The attach button: the kernel answers with a ticket of the same id."""

    v: int
    type: Literal["attach"]
    id: str
    where: list[str]
    """Paths of modules; empty: wherever the quantity is usually measured."""
    quantity: str
    schedule: str


class DetachClick(TypedDict):
    """The detach button; an empty quantity means every quantity of these modules."""

    v: int
    type: Literal["detach"]
    id: str
    where: list[str]
    quantity: str


class ControlClick(TypedDict):
    """Pause, Resume, Step, Stop."""

    v: int
    type: Literal["control"]
    id: str
    action: Literal["pause", "resume", "step", "stop"]


class CompiledClick(TypedDict):
    """The button of the notice that a model is compiled; answered with a ticket."""

    v: int
    type: Literal["compiled"]
    id: str
    steps: Literal["eager", "skip"]


class BudgetClick(TypedDict):
    """Budget of watching, in per cent of step time; None measures every due step."""

    v: int
    type: Literal["budget"]
    id: str
    percent: float | None


class ExportClick(TypedDict):
    """The links of the foot: picture, code, data."""

    v: int
    type: Literal["export"]
    kind: Literal["png", "svg", "csv", "netcdf", "code"]


class FoldClick(TypedDict):
    """Show a registered view, or its name alone; for all views of the panel."""

    v: int
    type: Literal["fold"]
    name: str
    folded: bool


class Moved(TypedDict):
    """The step range while a hand moves it; a selection follows when the hand rests."""

    v: int
    type: Literal["moved"]
    window: tuple[float, float] | None


class Pointed(TypedDict):
    """The step under the pointer, from a view; the step that a trait was set to, to the views."""

    v: int
    type: Literal["pointed"]
    step: int


Click: TypeAlias = AttachClick | DetachClick | ControlClick | CompiledClick | BudgetClick
"""A request to the run, answered with a ticket of the same ``id``."""

FromView: TypeAlias = (
    Hello
    | Visible
    | Viewport
    | Ack
    | SelectionMessage
    | Moved
    | Click
    | FoldClick
    | ExportClick
    | Pointed
)
