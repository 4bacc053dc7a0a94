"""The messages from the kernel to a panel's views, one typed dictionary each; back: `from_view`.

All travel as custom messages of one widget; every one carries ``v`` and ``type``. Bulk numbers are
little-endian binary buffers. The selection (home quantity, series, zoom window, options) belongs
to the widget, so that two views agree; hover, folding and the tree's marks belong to each view.
A view that meets another ``v`` shows one line instead of drawing.

A view says ``hello`` when it appears; the kernel answers with ``model``, ``status``,
``selection``, ``alerts`` and the last frames. Frames are sent only while some view is visible, at
most one unacknowledged frame per kind where acknowledgements can arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from notebook_probe.explorer.messages.vector_frames import Glyph
from notebook_probe.record.views.thinning.colour_scale import ColourMap
from notebook_probe.run.health.status import ValueKind

__all__ = [
    "VERSION",
    "Alignment",
    "ArrayPlace",
    "DrawnFrame",
    "EsmMessage",
    "Exported",
    "Frame",
    "HeatFrame",
    "Layout",
    "LineSeries",
    "LinesFrame",
    "ModelMessage",
    "SelectionMessage",
    "SilentRow",
    "StatusMessage",
    "Tally",
    "TicketRow",
    "ViewRow",
    "ViewsMessage",
]

VERSION = 1

Alignment: TypeAlias = Literal["step", "time", "samples", "epochs", "loss"]
"""What is the same in two runs where they are compared."""

Frame: TypeAlias = tuple[Mapping[str, Any], list[memoryview]]
"""A message that draws something (its ``seq`` is stamped when it is sent) and its buffers."""

Layout: TypeAlias = list[list[tuple[int, int]]]
"""Of each buffer of a frame its groups of rows, one after the other: how many, bytes of each.

What stands at the front of all rows of a group, and fields, may be left out where they are as in
the frame before. Such a frame has ``base``, the ``seq`` of that one; ``kept``, for each group the
bytes of each row that are not sent; and one buffer with the rest of all rows, in their order. A
view that has another frame says ``hello`` again.
"""


class QuantityRow(TypedDict):
    """One line of the quantity list."""

    name: str
    summary: str
    needs: list[str]
    units: str
    value: ValueKind
    question: str
    topic: str
    """The question in few words."""
    formula: str
    aliases: list[str]
    every_step: bool
    """It costs the same however rarely it is due."""
    usual: float | None
    """What it is like where all is well; None where that depends on the model."""
    misfits: list[str]
    """For each kind of place why it cannot be measured there, in words; "" where it can."""


class ModelMessage(TypedDict):
    """What is being looked at; sent on hello and when the module table or catalogue changes."""

    v: int
    type: Literal["model"]
    name: str
    location: str
    live: bool
    """False for an opened record: no attach box, no controls."""
    modules: list[tuple[str, str, int, int, int]]
    """(path, class, n_params, n_own_params, parent row or -1), definition order; root is (root)."""
    entries: list[tuple[str, str]]
    """(entry, module it belongs to) of everything else that has values or probes: parameters
    (``fc1.weight``) and single calls (``cell[0]``), in the order of rows."""
    kinds: list[int]
    """The kind of each of ``modules``, then of each of ``entries``: what fits one place of a kind
    fits all of it. Empty where nothing can be attached."""
    quantities: list[QuantityRow]


class TicketRow(TypedDict):
    """What became of one click."""

    id: str
    state: Literal["queued", "applied", "refused"]
    queued_step: int
    applied_step: int
    text: str


class TicketMessage(TicketRow):
    """One click is queued, refused or applied: sent at once, before the status that has it too."""

    v: int
    type: Literal["ticket"]


class ProblemRow(TypedDict):
    """One probe error or a problem of the writer, in words."""

    module: str
    quantity: str
    text: str
    count: int
    disabled: bool


class SilentRow(TypedDict):
    """Probes that have no value for one reason."""

    kind: Literal["waiting", "compiled", "silent"]
    """waiting: not due yet; compiled: their calls run no hooks; silent: any other reason."""
    reason: str
    probes: list[int]
    """Places in ``attached``."""


Tally: TypeAlias = tuple[int, float, float]
"""Of one probe: step of the last value or -1, microseconds per step, per cent of step time."""


class StatusMessage(TypedDict):
    """The top bar, the marks of the tree and the foot; a few times a second.

    All but ``state`` and ``step`` is left out of a status in which it is what it was in the one
    before, so a view keeps the last it got.
    """

    v: int
    type: Literal["status"]
    state: Literal["waiting", "training", "paused", "idle", "finished", "failed"]
    step: int
    end_step: int
    """The step at which training will end; -1 when it is not known."""
    epoch: int
    """That of the training loop; -1 when it is not known."""
    seconds_left: float | None
    rate: float | None
    cost_percent: float | None
    budget: str
    """What is done to keep the cost inside a budget, in words; empty without one."""
    progress: str
    """What is being measured now and takes a while, in words; mostly empty."""
    route: str
    """How clicks are answered: own subshell, pump, after the cell, no kernel."""
    scalar: NotRequired[tuple[str, float | None, list[float | None]]]
    """Name, last value and up to 90 recent values, of 4 digits, of the user's first logged scalar
    (`loss`, where there is one); None where it is NaN or infinite, which JSON cannot say."""
    attached: list[tuple[str, str, str]]
    """(module, quantity, schedule) of every attached probe."""
    recorded: dict[str, list[str]]
    """Quantity -> modules that have at least one value, in definition order."""
    logged: list[str]
    """Those of them that the loop logs, of the model as a whole."""
    tallies: list[Tally]
    """One for each of ``attached``."""
    silent: list[SilentRow]
    costs: dict[str, float]
    """Quantity -> microseconds per step of one probe of it here; only of those that have fired."""
    vectors: dict[str, Glyph]
    """Quantities whose values are vectors or other arrays, and their signs."""
    problems: list[ProblemRow]
    tickets: list[TicketRow]
    """The newest last, at most 8."""
    can: dict[str, str]
    """Control -> "" when it can act now, else the reason it is greyed."""
    record: str
    """Location, as shown in the foot."""
    nbytes: int
    flushed_age_s: float | None
    dropped_rows: int


class SelectionMessage(TypedDict):
    """The shared choice of what to draw; sent by the kernel on every change, and by a view."""

    v: int
    type: Literal["selection"]
    home: str
    """Quantity of the heat map; "" before anything is recorded."""
    series: list[tuple[str, str]]
    """(module, quantity) drawn as lines, in the order of their colours."""
    window: tuple[float, float] | None
    """Step range both views show; None for everything."""
    log_heat: bool | None
    """None: as fits what is drawn."""
    cells: Literal["max", "mean"]
    """What a cell of several steps shows: the largest value keeps a spike, the mean the level."""
    log_y: bool | None
    """None: as fits what is drawn."""
    log_x: bool
    smooth: float
    """0 (none) to 0.999: weight of the debiased exponential average, in the plotted scale."""
    x_axis: Literal["step", "time"]
    rows: list[str]
    """The heat map has those that are, or lie below, one of these; all of them where empty."""
    folds: list[str]
    """One row of the heat map stands for each of these and all that lies below it."""
    others: list[str]
    """Locations of the runs that are compared with this one."""
    ratio_to: str
    """Which of them the heat map is divided by; empty for the values of this run."""
    aligned: Alignment
    apart: tuple[float, int]
    """Factor beyond which, and rows for which, two runs have parted."""
    grouped: bool
    """The others are one group."""


class LineSeries(TypedDict):
    """Where one series lies in the buffer: n x values, n y values, then those of its average."""

    module: str
    quantity: str
    colour: int
    """Index bound to the series for good: Okabe-Ito colour = index % 7, dash = index // 7."""
    n: int
    n_average: int
    """Points of its average, which is taken of every recorded value and thinned on its own."""
    offset: int
    """In float32 elements from the start of the buffer."""
    n_rows: int
    """Recorded points in the window before thinning; n == n_rows means nothing was thinned."""
    first_step: int
    last_step: int
    last_value: float | None
    n_nonfinite: int
    weight: float
    """Of its average: as chosen, at most 1 - 10 / n of n recorded values."""
    marks: list[float]
    """x (relative to x0) of recorded values that are NaN or infinite."""


class LinesFrame(TypedDict):
    """The line view. x is relative to ``x0`` because float32 is exact only below 2**24."""

    v: int
    type: Literal["lines"]
    seq: int
    layout: Layout
    x0: float
    smooth: float
    """Weight of the averages, as chosen."""
    log_y: bool
    """Of its values, unless the selection says otherwise."""
    averaged: float
    """Share of the recorded values that are in the averages; below 1 there is more to come."""
    series: list[LineSeries]
    events: list[tuple[float, str, str]]
    """(x relative to x0, kind, text): where a probe was attached, training paused, and so on;
    alerts have messages of their own."""
    # buffers[0]: float32


class HeatFrame(TypedDict):
    """The heat map: block reductions of rows x columns.

    buffers: [0] float32 mean (row, column), row-major; [1] uint8 state (row, column):
    0 value, 1 not measured, 2 contains NaN or infinity; [2] float32 maximum of each block.
    """

    v: int
    type: Literal["heat"]
    seq: int
    layout: Layout
    quantity: str
    rows: list[str]
    columns: int
    first_step: int
    last_step: int
    """Column c covers steps first + c*(last+1-first)/columns up to the next column's."""
    low: float | None
    high: float | None
    """Ends of the colours; None without a finite value (without a positive one when ``log``)."""
    lowest: float | None
    highest: float | None
    """Of the finite values: what lies beyond the colours has those of their ends."""
    log: bool
    """Whether the colours are logarithmic, unless the selection says otherwise."""
    colours: ColourMap


class ViewRow(TypedDict):
    """One registered view: what stands above it."""

    name: str
    summary: str
    folded: bool
    cost_s: float | None
    """Of a core, for one drawing; None before the first."""
    every_s: float | None
    """Seconds from one drawing to the next; None while training rests, which draws at once."""
    error: str
    """In place of the picture; empty when the last drawing went well."""
    where: str
    """Line of the error, and what stands there; empty for one that has no line."""
    n_errors: int
    """Failures in a row."""


class ViewsMessage(TypedDict):
    """The registered views that are drawn at their own pace, in the order of registration."""

    v: int
    type: Literal["views"]
    rows: list[ViewRow]


class EsmMessage(TypedDict):
    """The ES module of a view: when a view of the panel comes, and when it is registered again."""

    v: int
    type: Literal["esm"]
    view: str
    text: str
    """Empty for a view that has none."""


class ArrayPlace(TypedDict):
    """Where an array was in ``data``; its numbers are the buffer of the same place in the list."""

    path: list[str | int]
    dtype: str
    shape: list[int]


class DrawnFrame(TypedDict):
    """A registered view as it was drawn: a PNG in buffers[0], data for its module, or nothing."""

    v: int
    type: Literal["drawn"]
    seq: int
    view: str
    form: Literal["image", "data", "nothing"]
    width: NotRequired[int]
    """Of the image, in CSS pixels."""
    height: NotRequired[int]
    data: NotRequired[Any]
    arrays: NotRequired[list[ArrayPlace]]


class Exported(TypedDict):
    """A file for the browser to save, in buffers[0]; ``text`` instead for code, or an error."""

    v: int
    type: Literal["exported"]
    filename: str
    mime: str
    text: NotRequired[str]
    error: NotRequired[str]
    note: NotRequired[str]
    """What was saved, where the name of the file does not say it all."""
