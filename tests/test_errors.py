"""Every error is a ProbeError and also the builtin that would catch it."""

import builtins
import inspect

import pytest

from notebook_probe import errors
from notebook_probe.errors import (
    CheckpointError,
    ClosedRunError,
    DuplicateNameError,
    HookError,
    InfLossError,
    InterferenceError,
    MissingExtraError,
    NanLossError,
    NoChangeError,
    NonFiniteError,
    NonFiniteGradientError,
    NotApplicableError,
    ProbeError,
    QuantityError,
    RecordFormatError,
    RecordLockedError,
    RecordMismatchError,
    RecordWriteError,
    ScheduleError,
    StoreSilentError,
    TrainingError,
    TrainingStopped,
    UnknownNameError,
    first_line,
    near,
)

CAUGHT_BY = {
    UnknownNameError: (ValueError, KeyError, LookupError),
    DuplicateNameError: (ValueError,),
    ScheduleError: (ValueError,),
    QuantityError: (ValueError,),
    NotApplicableError: (ValueError,),
    InterferenceError: (RuntimeError,),
    ClosedRunError: (RuntimeError,),
    RecordFormatError: (ValueError,),
    RecordMismatchError: (FileExistsError, OSError),
    RecordLockedError: (BlockingIOError, OSError),
    RecordWriteError: (OSError,),
    StoreSilentError: (ConnectionError, OSError),
    MissingExtraError: (ImportError,),
    HookError: (TrainingError, RuntimeError),
    CheckpointError: (TrainingError, RuntimeError),
    NoChangeError: (TrainingError, RuntimeError),
    NanLossError: (NonFiniteError, TrainingError, ArithmeticError),
    InfLossError: (NonFiniteError, TrainingError, ArithmeticError),
    NonFiniteGradientError: (NonFiniteError, TrainingError, ArithmeticError),
}


@pytest.mark.parametrize("error", CAUGHT_BY, ids=lambda error: error.__name__)
def test_an_error_is_caught_as_ours_and_as_the_builtin(error: type[ProbeError]) -> None:
    for builtin in (ProbeError, *CAUGHT_BY[error]):
        with pytest.raises(builtin, match=r"^what was given$"):
            raise error("what was given")


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = inspect.getdoc(errors) or ""
    exceptions = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and value.__module__ == errors.__name__
    ]
    for error in exceptions:
        line = next(line for line in drawn.splitlines() if f" {error.__name__} " in f" {line} ")
        for base in error.__bases__:
            if base not in exceptions and base is not Exception:
                assert getattr(builtins, base.__name__) is base
                assert base.__name__ in line


def test_stop_is_no_exception_that_a_training_loop_would_swallow() -> None:
    assert issubclass(TrainingStopped, KeyboardInterrupt)
    assert not issubclass(TrainingStopped, Exception)
    assert not issubclass(TrainingStopped, ProbeError)


def test_stop_is_one_line_in_a_notebook() -> None:
    assert TrainingStopped("stopped before step 3")._render_traceback_() == [
        "TrainingStopped: stopped before step 3"
    ]


def test_an_unknown_name_without_a_message_is_empty() -> None:
    assert str(UnknownNameError()) == ""


def test_few_known_names_are_listed_and_many_are_counted() -> None:
    assert near("zzz", ["fc", "relu"]) == "known: 'fc', 'relu'"
    assert near("zzz", []) == "known: none"
    assert near("zzz", [f"layer{i}" for i in range(20)]).endswith("'layer11' and 8 more")


def test_close_names_come_best_first_and_limited() -> None:
    assert near("layre1", ["layer1", "layer2", "head"]) == "close: 'layer1', 'layer2'"
    assert near("layer", [f"layer{i}" for i in range(9)], limit=2).count("'") == 4


def test_a_slip_in_the_last_word_of_a_long_name_is_found() -> None:
    known = ["alerts.lr_high", "config.lr", "git.branch"]
    assert near("lrr", known) == "close: 'config.lr'"
    assert near("moon", known).startswith("known: ")


def test_what_another_library_says_is_cut_to_its_first_line_and_a_thousand_characters() -> None:
    several = BaseExceptionGroup("many", [OSError("x" * 10_000 + "\nmore"), ValueError("next")])
    assert first_line(several) == "OSError: " + "x" * (1000 - len("OSError: "))
    assert first_line(KeyError("name")) == "KeyError: 'name'"


@pytest.mark.parametrize("error", [ProbeError, UnknownNameError, RecordWriteError])
def test_a_message_of_any_length_keeps_its_beginning_and_its_end(error: type[ProbeError]) -> None:
    told = str(error("given " + "x" * 100_000 + " allowed"))
    assert told.startswith("given x")
    assert told.endswith("x allowed")
    assert len(told) < 5_000
