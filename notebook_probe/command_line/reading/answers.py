"""Classes of answers: the fields of the JSON of each verb, with descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

__all__ = [
    "AgainstAnswer",
    "AlertLine",
    "AlertsAnswer",
    "AnswerOfRun",
    "AttachableLine",
    "CauseLine",
    "ConsequenceLine",
    "DifferenceLine",
    "EndLine",
    "EventLine",
    "EvidenceLine",
    "ExplainAnswer",
    "FollowLine",
    "FollowedAlertLine",
    "GroupLine",
    "JudgedLine",
    "ModuleLine",
    "OffLine",
    "OutputAnswer",
    "OutputLine",
    "PlotAnswer",
    "Point",
    "ProgressLine",
    "QuantitiesAnswer",
    "RecordedLine",
    "RunState",
    "SeriesAnswer",
    "SeriesLine",
    "SparklineLine",
    "StartLine",
    "TreeAnswer",
]

RunState: TypeAlias = Literal["running", "finished", "killed"]

Point: TypeAlias = tuple[int, float]
"""Step and value."""

Steps: TypeAlias = Annotated[int, "number of completed steps"]
Step: TypeAlias = Annotated[int, "step: number of updates before this batch, from 0"]
ModuleName: TypeAlias = Annotated[str, "module path; '(root)' is the whole model"]
LeftOut: TypeAlias = Annotated[int, "entries left out; --limit 0 returns all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOfRun:
    """Fields of every answer about a run."""

    run: Annotated[str, "location of the record"]
    name: Annotated[str, "title of the run"]
    state: Annotated[RunState, "killed: not ended, and no process writes it"]
    steps: Steps
    problems: Annotated[tuple[str, ...], "parts of the record that cannot be read"] = ()


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One finding of a rule."""

    step: Annotated[int, "step of the row with which the condition was met"]
    severity: Literal["remark", "warning", "severe"]
    rule: str
    where: Annotated[str, "place in words"]
    sentence: str
    modules: tuple[ModuleName, ...]
    quantities: tuple[str, ...]
    began: Annotated[
        tuple[int, int] | None, "last step measured without it, first step measured with it"
    ]


@dataclass(frozen=True, slots=True)
class OffLine:
    """A rule that is off, as its condition raised an error."""

    rule: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsAnswer(AnswerOfRun):
    """Answer of `alerts`."""

    alerts: tuple[AlertLine, ...]
    off: Annotated[tuple[OffLine, ...], "rules that are off"]
    left_out: LeftOut
    failed: Annotated[bool, "an alert is as severe as --fail-on; the exit code is 3"]


@dataclass(frozen=True, slots=True)
class OutputLine:
    """A line that was printed."""

    step: Steps
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAnswer(AnswerOfRun):
    """Answer of `output`."""

    lines: Annotated[tuple[OutputLine, ...], "the last lines of the program, the newest last"]
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """A series around the start of a cause."""

    module: ModuleName
    quantity: str
    before: Annotated[Point | None, "last step and value before it began"]
    after: Annotated[Point | None, "first step and value with it"]


@dataclass(frozen=True, slots=True)
class ConsequenceLine:
    """A finding that a cause explains."""

    step: Step
    rule: str
    where: str


@dataclass(frozen=True, slots=True)
class CauseLine:
    """A finding that no other explains."""

    alert: AlertLine
    evidence: tuple[EvidenceLine, ...]
    consequences: tuple[ConsequenceLine, ...]
    next: Annotated[tuple[str, ...], "commands that show more"]


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """Rules that could not judge."""

    missing: Annotated[tuple[str, ...], "series that are not recorded"]
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """A module at which a quantity differs from good runs."""

    module: ModuleName
    quantity: str
    step: Annotated[int, "step of the first row that differs"]
    ratio: Annotated[float | None, "this run by the good ones, smoothed; null without a value here"]
    here: Annotated[float, "value of this run at that row"]
    there: Annotated[float, "geometric mean of the good runs"]
    began: Annotated[int, "first step at which it may have begun"]
    rows: Annotated[int, "number of consecutive rows that differ"]


@dataclass(frozen=True, slots=True)
class AgainstAnswer:
    """Comparison of a run with good ones."""

    verdict: str
    good: Annotated[tuple[str, ...], "names of the good runs"]
    differences: Annotated[tuple[DifferenceLine, ...], "the first one first"]
    left_out: LeftOut
    models: Annotated[tuple[str, ...], "differences between the models, a sentence each"]
    compared: Annotated[tuple[str, ...], "quantities that were compared"]
    skipped: Annotated[tuple[str, ...], "reasons why others were not, a sentence each"]
    last_step: Annotated[int, "last step that was compared; -1 for none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAnswer(AnswerOfRun):
    """Answer of `explain`."""

    as_of: Annotated[Step | None, "last step that counts, of --step"] = None
    verdict: str
    causes: tuple[CauseLine, ...]
    remarks: Annotated[tuple[AlertLine, ...], "findings that may be intended"]
    well: Annotated[tuple[str, ...], "rules that looked and found nothing"]
    unknown: Annotated[tuple[JudgedLine, ...], "rules that could not judge"]
    off: Annotated[tuple[OffLine, ...], "rules that are off"]
    against: Annotated[AgainstAnswer | None, "differences from the good runs of --against"] = None
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class SeriesLine:
    """One quantity of one module over steps."""

    module: ModuleName
    quantity: str
    units: str
    rows: Annotated[int, "measured rows in the range"]
    thinned: Annotated[bool, "rows are left out; extremes and ends are kept"]
    points: Annotated[tuple[Point, ...], "step and value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesAnswer(AnswerOfRun):
    """Answer of `series`."""

    series: tuple[SeriesLine, ...]
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class ModuleLine:
    """One module of the model."""

    name: ModuleName
    class_name: str
    depth: Annotated[int, "0 for the whole model"]
    n_params: Annotated[int, "parameter elements of the module and everything below it"]
    n_own_params: Annotated[int, "parameter elements of the module itself"]
    trainable: Annotated[
        bool | None,
        "its own parameters require gradients; null in the first 20 steps",
    ]
    groups: Annotated[tuple[int, ...], "parameter groups that hold its own parameters"]
    updated: Annotated[
        bool | None, "whether the last measured update changed its parameters; null if not measured"
    ]
    quantities: Annotated[int, "number of quantities measured at the module"]
    alerts: Annotated[tuple[str, ...], "rules with alerts at the module"]


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One parameter group of an optimizer."""

    group: Annotated[int, "number of the group among those of all optimizers"]
    optimizer: Annotated[str, "class of the optimizer"]
    lr: Annotated[float | None, "learning rate at step 20, or 20 steps after a change of the model"]
    contents: Annotated[str, "what it holds, as text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAnswer(AnswerOfRun):
    """Answer of `tree`."""

    modules: Annotated[tuple[ModuleLine, ...], "in the order of definition"]
    groups: Annotated[tuple[GroupLine, ...], "parameter groups of all optimizers"]
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """One quantity that is recorded."""

    name: str
    units: str
    long_name: str
    schedules: Annotated[tuple[str, ...], "streams that hold it, such as every_10"]
    modules: Annotated[int, "number of modules at which it is measured; of vectors, of elements"]
    rows: Annotated[int, "rows of its streams"]
    last_step: Annotated[int | None, "step of the last row"]
    is_vector: bool


@dataclass(frozen=True, slots=True)
class AttachableLine:
    """One quantity that can be attached."""

    name: str
    units: str
    summary: str
    aliases: tuple[str, ...]
    needs: Annotated[tuple[str, ...], "features it is computed from"]


@dataclass(frozen=True, slots=True)
class QuantitiesAnswer:
    """Answer of `quantities`."""

    word: Annotated[str | None, "word that is looked for"]
    run: Annotated[str | None, "location of the record"]
    recorded: Annotated[tuple[RecordedLine, ...] | None, "None without a run"]
    attachable: Annotated[tuple[AttachableLine, ...] | None, "None for a run without a word"]
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class SparklineLine:
    """One series as a line of characters."""

    module: ModuleName
    quantity: str
    line: Annotated[str, "60 digits at most, 9 the greatest; ! is NaN or infinite, . not measured"]
    first: Point
    last: Point
    least: Annotated[float | None, "least finite value"]
    greatest: Annotated[float | None, "greatest finite value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotAnswer(AnswerOfRun):
    """Answer of `plot`."""

    file: Annotated[str | None, "file that was written"]
    series: tuple[SparklineLine, ...]
    left_out: LeftOut


@dataclass(frozen=True, slots=True)
class StartLine:
    """First line of `follow`."""

    run: Annotated[str, "location of the record"]
    name: Annotated[str, "title of the run"]
    state: RunState
    steps: Steps
    kind: Literal["start"] = "start"


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """Number of steps, and the loss."""

    steps: Steps
    loss: Annotated[float | None, "last recorded loss"]
    kind: Literal["progress"] = "progress"


@dataclass(frozen=True, slots=True)
class FollowedAlertLine:
    """A new alert or remark."""

    alert: AlertLine
    kind: Literal["alert"] = "alert"


@dataclass(frozen=True, slots=True)
class EventLine:
    """Any other new event of the record."""

    step: Step
    event: Annotated[str, "such as attach, set, checkpoint"]
    text: str
    kind: Literal["event"] = "event"


EndReason: TypeAlias = Literal[
    "until", "finished", "killed", "timeout", "interrupted", "unreadable"
]


@dataclass(frozen=True, slots=True)
class EndLine:
    """Last line of `follow`; always there."""

    reason: EndReason
    met: Annotated[str | None, "condition of --until that was met"]
    state: RunState
    steps: Steps
    seconds: Annotated[float, "duration of the command"]
    kind: Literal["end"] = "end"


FollowLine: TypeAlias = StartLine | ProgressLine | FollowedAlertLine | EventLine | EndLine
