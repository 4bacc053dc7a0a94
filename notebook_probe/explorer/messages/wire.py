"""The messages from the kernel to a panel's views, one typed dictionary each; back: `from_view`.

All travel as custom messages of one widget; every one carries ``v`` and ``type``; those with bulk
numbers are in `frames`. The selection (home quantity, series, zoom window, options) belongs
to the widget, so that two views agree; hover, folding and the tree's marks belong to each view.
A view that meets another ``v`` shows one line instead of drawing.

A view says ``hello`` when it appears; the kernel answers with ``model``, ``status``,
``selection``, ``alerts`` and the last frames. Frames are sent only while some view is visible, at
most one unacknowledged frame per kind where acknowledgements can arrive.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from notebook_probe.compare.line_axes import LineAxisName
from notebook_probe.explorer.charts import ChartMessage
from notebook_probe.explorer.messages.vector_frames import Glyph
from notebook_probe.run.health.status import ValueKind

__all__ = [
    "VERSION",
    "Alignment",
    "EsmMessage",
    "Exported",
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
"""Axis on which runs are aligned."""


class QuantityRow(TypedDict):
    """Row of the quantity list."""

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
    """True if its cost does not depend on how often it is due."""
    usual: float | None
    """Usual value in a healthy training; None if that depends on the model."""
    misfits: list[str]
    """For each kind of place the reason why it cannot be measured there; "" if it can."""


class ModelMessage(TypedDict):
    """The model; sent on hello and when the module table or the catalogue changes."""

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
    """State of one click."""

    id: str
    state: Literal["queued", "applied", "refused"]
    queued_step: int
    applied_step: int
    text: str


class TicketMessage(TicketRow):
    """State of one click, sent at once, before the status that contains it too."""

    v: int
    type: Literal["ticket"]


class ProblemRow(TypedDict):
    """An error of a probe or a problem of the writer, as text."""

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
"""Last step of a probe's values or -1, microseconds per step, per cent of step time."""


class StatusMessage(TypedDict):
    """The top bar, the marks of the tree and the foot; a few times a second.

    A status omits everything but ``state`` and ``step`` that has not changed since the previous
    one, so a view keeps the last values it got.
    """

    v: int
    type: Literal["status"]
    state: Literal["waiting", "training", "paused", "idle", "finished", "failed"]
    unheard: bool
    """No answer of a training elsewhere: ``state`` is the last that it had."""
    step: int
    end_step: int
    """The step at which training will end; -1 when it is not known."""
    epoch: int
    """Epoch of the training loop; -1 if unknown."""
    seconds_left: float | None
    rate: float | None
    cost_percent: float | None
    budget: str
    """Steps taken to keep the cost inside the budget, as text; empty without a budget."""
    progress: str
    """Slow measurement in progress, as text; mostly empty."""
    route: str
    """Way in which clicks are answered: own subshell, pump, after the cell, no kernel."""
    scalar: NotRequired[tuple[str, float | None, list[float | None]]]
    """Name, last value and up to 90 recent values, of 4 digits, of the user's first logged scalar
    (`loss`, where there is one); None where it is NaN or infinite, which JSON cannot say."""
    attached: list[tuple[str, str, str]]
    """(module, quantity, schedule) of every attached probe."""
    recorded: dict[str, list[str]]
    """Quantity -> modules that have at least one value, in definition order."""
    logged: list[str]
    """Recorded quantities that the loop logs, for the model as a whole."""
    tallies: list[Tally]
    """One tally per element of ``attached``."""
    silent: list[SilentRow]
    costs: dict[str, float]
    """Microseconds per step of one probe of each quantity; only quantities that have fired."""
    vectors: dict[str, Glyph]
    """Quantities whose values are vectors or other arrays, and their signs."""
    problems: list[ProblemRow]
    tickets: list[TicketRow]
    """The newest last, at most 8."""
    can: dict[str, str]
    """Control -> "" when it can act now, else the reason it is greyed."""
    record: str
    """Location, as shown in the foot."""
    device: str
    """Device of the model, such as ``cuda:0, NVIDIA H100``; empty if unknown."""
    nbytes: int
    flushed_age_s: float | None
    dropped_rows: int


class SelectionMessage(TypedDict):
    """The shared selection; sent by the kernel on every change, and by a view."""

    v: int
    type: Literal["selection"]
    home: str
    """Quantity of the heat map; "" before anything is recorded."""
    series: list[tuple[str, str]]
    """(module, quantity) drawn as lines, in the order of their colors."""
    window: tuple[float, float] | None
    """Step range both views show; None for everything."""
    log_heat: bool | None
    """Log scale of the heat map; None chooses."""
    cells: Literal["max", "mean"]
    """Value of a cell with several steps: the largest keeps a spike, the mean the level."""
    log_y: bool | None
    """Log scale of the lines; None chooses."""
    y_limits: tuple[float, float] | None
    """Lowest and highest value of the y axis; None fits the lines."""
    outliers: bool
    """The fitted y axis has room for single values far beyond all others, too."""
    charts: list[ChartMessage]
    """Charts as arranged; if empty, they are made automatically, with the scales above."""
    log_x: bool
    smooth: float
    """0 (none) to 0.999: weight of the debiased exponential average, in the plotted scale."""
    x_axis: LineAxisName
    rows: list[str]
    """The heat map has the rows at or below these; all rows if empty."""
    folds: list[str]
    """Modules that are folded: one row for the module and everything below it."""
    others: list[str]
    """Locations of the runs that are compared with this one."""
    ratio_to: str
    """Run by which the heat map is divided; empty for the values of this run."""
    aligned: Alignment
    apart: tuple[float, int]
    """Factor beyond which, and rows for which, two runs have parted."""
    grouped: bool
    """The others are one group."""
    chosen_colors: list[tuple[str, str, int]]
    """(module, quantity, color) where a user chose one; all others are automatic."""


class ViewRow(TypedDict):
    """Header of one registered view."""

    name: str
    summary: str
    folded: bool
    cost_s: float | None
    """CPU seconds of one drawing; None before the first."""
    every_s: float | None
    """Seconds from one drawing to the next; None while training rests, which draws at once."""
    error: str
    """Error text in place of the picture; empty if the last drawing succeeded."""
    where: str
    """Line of the error and its text; empty for an error without a line."""
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


class Exported(TypedDict):
    """A file for the browser to save, in buffers[0]; ``text`` instead for code, or an error."""

    v: int
    type: Literal["exported"]
    filename: str
    mime: str
    text: NotRequired[str]
    error: NotRequired[str]
    note: NotRequired[str]
    """Description of the saved content, if the file name is not enough."""
