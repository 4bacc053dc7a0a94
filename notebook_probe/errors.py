"""Errors and warnings of notebook_probe.

Every error but `TrainingStopped` derives from `ProbeError` and from the builtin error that fits it.

::

    ProbeError
    ├── UnknownNameError     (ValueError, KeyError)   an unknown module, quantity or series
    ├── DuplicateNameError   (ValueError)             a name that is taken
    ├── ScheduleError        (ValueError)             a schedule that cannot be read
    ├── SettingError         (ValueError)             a value that a running training refuses
    ├── ParamError           (ValueError, TypeError)  parameters with an invalid or missing value
    ├── BreakpointError      (ValueError)             a condition that can pause no training
    ├── QueryError           (ValueError)             a condition on runs that cannot be read
    ├── NotLookedError       (LookupError)            a look that has stored nothing
    ├── NoGraphError         (LookupError)            a record without the graph of its network
    ├── QuantityError        (ValueError)             a quantity that is badly defined
    ├── NotApplicableError   (ValueError)             a module lacks what the quantity needs
    ├── InterferenceError    (RuntimeError)           a quantity that changes what training uses
    ├── RuleError            (ValueError)             an alert rule that is badly defined
    ├── ViewError            (ValueError)             a view that is badly defined
    ├── UnreadableError      (TypeError)              a tensor without values to read
    ├── ClosedRunError       (RuntimeError)           a run that has ended
    ├── RecordFormatError    (ValueError)             not a record, or one of a newer format
    ├── RecordMismatchError  (FileExistsError)        the store has another model's record
    ├── RecordLockedError    (BlockingIOError)        another writer has the store
    ├── RecordWriteError     (OSError)                the store cannot be written
    ├── StoreSilentError     (ConnectionError)        the store of a record does not answer
    ├── CatalogueError       (OSError)                a catalogue whose database cannot be used
    ├── MissingExtraError    (ImportError)            an optional library that is not installed
    ├── TrainingError        (RuntimeError)           a training that cannot continue
    │   ├── HookError                                 a hook of a loop raised
    │   ├── NoChangeError                             nothing was updated where it should have been
    │   ├── HiLossError                               the loss is above what was allowed
    │   ├── CheckpointError                           a checkpoint that cannot be used
    │   └── NonFiniteError   (ArithmeticError)        a value is not finite
    │       ├── NanLossError                          the loss is NaN
    │       ├── InfLossError                          the loss is infinite
    │       └── NonFiniteGradientError                the norm of the gradients is

    TrainingStopped (KeyboardInterrupt)               Stop was pressed: ends the training loop
    RecordWarning   (UserWarning)                     a part of a record cannot be read or written
    RegistryWarning (UserWarning)                     an extension that cannot be loaded
    ReplayWarning   (UserWarning)                     a replayed step differs from the record
    ReplacedWarning (UserWarning)                     a logged number replaced another

A message says what was given, what is allowed, and where, in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import FunctionType
from typing import TypeVar

__all__ = [
    "LONGEST",
    "BreakpointError",
    "CatalogueError",
    "CheckpointError",
    "ClosedRunError",
    "DuplicateNameError",
    "HiLossError",
    "HookError",
    "InfLossError",
    "InterferenceError",
    "MissingExtraError",
    "NanLossError",
    "NoChangeError",
    "NoGraphError",
    "NonFiniteError",
    "NonFiniteGradientError",
    "NotApplicableError",
    "NotLookedError",
    "ParamError",
    "ProbeError",
    "QuantityError",
    "QueryError",
    "RecordFormatError",
    "RecordLockedError",
    "RecordMismatchError",
    "RecordWarning",
    "RecordWriteError",
    "RegistryWarning",
    "ReplacedWarning",
    "ReplayWarning",
    "RuleError",
    "ScheduleError",
    "SettingError",
    "StoreSilentError",
    "TrainingError",
    "TrainingStopped",
    "UnknownNameError",
    "UnreadableError",
    "ViewError",
    "first_line",
    "near",
    "shown_as",
    "without_middle",
]

Kind = TypeVar("Kind")

LONGEST = 1_000
"""Characters of another library's error that are repeated; it may hold all of a damaged file."""


LONGEST_MESSAGE = 4_000
"""Characters of an error: a name in a damaged record may be as long as its file."""


class ProbeError(Exception):
    """Base of every error this package raises."""

    def __str__(self) -> str:
        return without_middle(super().__str__())


class UnknownNameError(ProbeError, ValueError, KeyError):
    """An unknown name; the message lists the close ones."""

    def __str__(self) -> str:  # KeyError would quote the message
        return without_middle(str(self.args[0])) if self.args else ""


class DuplicateNameError(ProbeError, ValueError):
    """A name that is already taken by something else."""


class ScheduleError(ProbeError, ValueError):
    """A schedule that does not parse or has impossible numbers."""


class SettingError(ProbeError, ValueError):
    """A value that a running training does not accept."""


class ParamError(ProbeError, ValueError, TypeError):
    """Parameters with an invalid or missing value."""


class NotLookedError(ProbeError, LookupError):
    """A look that was refused, is not complete yet, or found no tensors."""


class NoGraphError(ProbeError, LookupError):
    """A record without the graph of its network."""


class BreakpointError(ProbeError, ValueError):
    """Invalid condition of a breakpoint."""


class QueryError(ProbeError, ValueError):
    """A condition on runs that cannot be parsed, or that fails for a run."""


class CatalogueError(ProbeError, OSError):
    """A catalogue whose database cannot be reached, read or written."""


class QuantityError(ProbeError, ValueError):
    """A quantity whose definition cannot work."""


class NotApplicableError(ProbeError, ValueError):
    """A quantity at a module that lacks what it needs."""


class InterferenceError(ProbeError, RuntimeError):
    """A quantity changed what training uses; it is disabled at once."""


class RuleError(ProbeError, ValueError):
    """An alert rule whose definition cannot work."""


class ViewError(ProbeError, ValueError):
    """A view whose definition cannot work, or that returned what cannot be drawn."""


class UnreadableError(ProbeError, TypeError):
    """A tensor without values, or of a kind that cannot be converted: a gap, not a failure."""


class ClosedRunError(ProbeError, RuntimeError):
    """A call on a run that has been closed."""


class RecordFormatError(ProbeError, ValueError):
    """A path that holds no record, or one this version cannot read."""


class RecordMismatchError(ProbeError, FileExistsError):
    """A store that already holds the record of another model."""


class RecordLockedError(ProbeError, BlockingIOError):
    """A store that another writer has open."""


class RecordWriteError(ProbeError, OSError):
    """A store that cannot be written."""


class StoreSilentError(ProbeError, ConnectionError):
    """The store of a record does not answer; what was read before stays readable."""


class MissingExtraError(ProbeError, ImportError):
    """A library that only some need; the message says how to install it."""


class TrainingError(ProbeError, RuntimeError):
    """A training that cannot continue."""


class HookError(TrainingError):
    """A hook of a loop raised; its own error is the cause."""


class NoChangeError(TrainingError):
    """A unit without an update, or a gradient scaler that keeps skipping updates."""


class HiLossError(TrainingError):
    """The loss is above the threshold that was set for it."""


class CheckpointError(TrainingError):
    """A checkpoint that cannot be written, cannot be read, or does not fit."""


class NonFiniteError(TrainingError, ArithmeticError):
    """A value that training needs is not finite."""


class NanLossError(NonFiniteError):
    """The loss is NaN."""


class InfLossError(NonFiniteError):
    """The loss is infinite."""


class NonFiniteGradientError(NonFiniteError):
    """The norm of the gradients is NaN or infinite, and cannot be clipped."""


class RegistryWarning(UserWarning):
    """An extension that another package declares cannot be loaded; everything else can."""


class RecordWarning(UserWarning):
    """A part of a record cannot be read, or could not be written; the other parts are complete."""


class ReplacedWarning(UserWarning):
    """A logged number replaced another at its step, or its series got another name.

    If a number was replaced, the last one is recorded. If the series got another name, the message
    says which: a probe, or the other phase, has the given name.
    """


class ReplayWarning(UserWarning):
    """Replayed steps differ from the record."""


class TrainingStopped(KeyboardInterrupt):
    """Raised at a step boundary after Stop: ends the training loop like the interrupt button."""

    def _render_traceback_(
        self,
    ) -> list[str]:  # IPython's protocol: one line
        return [f"TrainingStopped: {self}"]


def without_middle(message: str) -> str:
    """Return a message, or the beginning and the end of a long one.

    There are what was given, and what is allowed.

    Examples
    --------
    >>> len(without_middle(9_000 * "a"))
    4003
    """
    if len(message) <= LONGEST_MESSAGE:
        return message
    half = LONGEST_MESSAGE // 2
    return f"{message[:half]} … {message[-half:]}"


def near(name: str, known: Iterable[str], limit: int = 4) -> str:
    """Return close matches of ``name`` for the end of an error message, or the known names.

    Examples
    --------
    >>> near("layre1", ["layer1", "layer2", "head"])
    "close: 'layer1', 'layer2'"
    >>> near("zzz", ["fc", "relu"])
    "known: 'fc', 'relu'"
    >>> near("lrr", ["config.lr", "git.branch"])
    "close: 'config.lr'"
    """
    names = list(known)
    name = name if isinstance(name, str) else ""
    within = [known for known in names if name and name.lower() in known.lower()]
    close = get_close_matches(name, names, n=limit, cutoff=0.6) or within or _by_end(name, names)
    if close := close[:limit]:
        return "close: " + ", ".join(repr(match) for match in close)
    shown = ", ".join(repr(match) for match in names[:12])
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"known: {shown or 'none'}{more}"


def _by_end(name: str, names: Iterable[str]) -> list[str]:
    """Return the names whose part after the last dot is close."""
    return [one for one in names if get_close_matches(name, [one.rpartition(".")[2]], cutoff=0.75)]


def first_line(error: BaseException) -> str:
    r"""Return the first line of another library's error, cut off; of several errors, of the first.

    Examples
    --------
    >>> first_line(ExceptionGroup("both", [OSError("no space\nleft on device"), ValueError()]))
    'OSError: no space'
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".partition("\n")[0][:LONGEST]


def shown_as(owner: str) -> Callable[[type[Kind]], type[Kind]]:
    """Name the methods of a class after ``owner`` in the errors that Python raises.

    The methods of a run are defined in many classes. A call with wrong arguments would name one of
    these, which users do not know.

    Examples
    --------
    >>> @shown_as("run")
    ... class Actions:
    ...     def pause(self) -> None: ...
    >>> Actions().pause(1)
    Traceback (most recent call last):
        ...
    TypeError: run.pause() takes 1 positional argument but 2 were given
    """

    def renamed(kind: type[Kind]) -> type[Kind]:
        for name, member in vars(kind).items():
            while isinstance(member, FunctionType):
                member.__qualname__ = f"{owner}.{name}"
                member = getattr(member, "__wrapped__", None)
        return kind

    return renamed
