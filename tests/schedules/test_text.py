"""Every schedule prints as text that is read back; no text does anything else."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from notebook_probe.errors import ScheduleError
from notebook_probe.record.format.schema import check_stream
from notebook_probe.schedules import (
    Every,
    Geometric,
    KeepN,
    Schedule,
    Seconds,
    Steps,
    Times,
    between,
    include_first,
    include_last,
    schedule,
)
from notebook_probe.schedules.text import EXAMPLES

whole = st.integers(-(2**70), 2**70)
simple: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Every, st.integers(1, 2**70), whole),
    st.builds(Steps, st.frozensets(whole, max_size=5)),
    st.builds(Times, st.integers(0, 2**70)),
    st.builds(
        Geometric, st.integers(1, 2**70), st.floats(1, exclude_min=True, allow_infinity=False)
    ),
    st.builds(Seconds, st.floats(0, allow_infinity=False)),
    st.builds(KeepN, st.integers(2, 2**70), whole),
    st.builds(lambda a, n: between(a, a + n), whole, st.integers(1, 2**70)),
)
nested = st.recursive(
    simple,
    lambda parts: st.one_of(
        st.builds(lambda one, other: one & other, parts, parts),
        st.builds(lambda one, other: one | other, parts, parts),
        st.builds(include_first, parts),
        st.builds(include_last, parts),
    ),
    max_leaves=12,
)


@given(one=nested)
@example(Geometric(1, 1.0000000000000002))
@example(Seconds(5e-324))
@example(Seconds(1.7976931348623157e308))
@example(Seconds(1e22))
@example(Seconds(0.1))
def test_every_schedule_is_read_back_from_its_own_text(one: Schedule) -> None:
    again = schedule(str(one))
    assert again == one
    assert str(again) == str(one)
    assert again.stream == one.stream


@given(one=nested, spaces=st.lists(st.sampled_from(["", " ", "  ", "\t", "\n"]), min_size=1))
def test_spaces_may_stand_anywhere_between_words(one: Schedule, spaces: list[str]) -> None:
    words = re.findall(r"[A-Za-z_]\w*|[+-]?[\d.]+(?:e[+-]?\d+)?|\S", str(one))
    text = "".join(word + spaces[i % len(spaces)] for i, word in enumerate(words))
    assert schedule(text) == one


@given(one=nested)
def test_every_stream_has_a_name_that_a_record_can_hold(one: Schedule) -> None:
    if not isinstance(one, Every | KeepN):  # whose numbers are those of steps
        check_stream(one.stream)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("times(20)", Times(20)),
        ("geometric(100, 1.2)", Geometric(100, 1.2)),
        ("geometric(100, 2)", Geometric(100, 2.0)),
        ("seconds(30)", Seconds(30)),
        ("seconds(.5)", Seconds(0.5)),
        ("seconds(1e3)", Seconds(1000)),
        ("keep(256)", KeepN(256)),
        ("steps(0, 5)", Steps({0, 5})),
        ("steps()", Steps(())),
        ("50 & between(100, 200)", Every(50) & between(100, 200)),
        ("every 50 | times(3)", Every(50) | Times(3)),
        ("(every(5))", Every(5)),
        ("include_first(10)", include_first(Every(10))),
        ("include_last(every 10)", include_last(Every(10))),
        ("every(2) & every(3) | every(5)", (Every(2) & Every(3)) | Every(5)),
        ("every(2) & (every(3) | every(5))", Every(2) & (Every(3) | Every(5))),
        ("linear(4, 1) | linear(0, 0)", Every(4, 1) | Every(1)),
    ],
)
def test_a_written_form_means_one_schedule(text: str, meant: Schedule) -> None:
    assert schedule(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "times()",
        "times(-1)",
        "times(2.5)",
        "times(1, 2)",
        "times",
        "geometric(100)",
        "geometric(0, 2)",
        "geometric(10, 1)",
        "geometric(10, nan)",
        "seconds(-1)",
        "seconds(inf)",
        "seconds(1e999)",
        "seconds(1.2.3)",
        "seconds(1_0)",
        "seconds(٣)",
        "keep(1)",
        "between(5)",
        "between(5, 5)",
        "every(5) &",
        "& every(5)",
        "every(5) && every(6)",
        "every(5) | | every(6)",
        "every(5), every(6)",
        "(every(5)",
        "every(5))",
        "()",
        "include_first()",
        "include_first(every(5), every(6))",
        "include_first(0)",
        "times(times(3))",
        "every(every(3))",
        "__import__('os')",
        "every(5).n",
        "every(5)[0]",
        "lambda: 1",
        "every(n=5)",
        "every(0x10)",
        "every(" + "9" * 5000 + ")",
        "(" * 1000 + "5" + ")" * 1000,
        "include_first(" * 1000 + "5" + ")" * 1000,
    ],
)
def test_text_that_is_no_schedule_is_one_error_with_what_was_given(text: str) -> None:
    with pytest.raises(ScheduleError, match=r"^schedule ") as error:
        schedule(text)
    assert repr(text[:100])[:-1] in str(error.value)
    assert len(str(error.value)) < 1500


@pytest.mark.parametrize("text", ["evry(5)", "time(20)", "geometrc(100, 1.2)", "keepn(5)"])
def test_a_misspelt_name_is_told_the_near_one_and_what_is_allowed(text: str) -> None:
    with pytest.raises(ScheduleError, match=r"does not parse; \w+\(") as error:
        schedule(text)
    assert EXAMPLES in str(error.value)


@given(text=st.text())
@example("every(1)\x00")
@example("every(1)\ud800")
def test_any_text_is_a_schedule_or_one_error(text: str) -> None:
    with suppress(ScheduleError):
        one = schedule(text)
        assert schedule(str(one)) == one


@given(text=st.text(alphabet="every(0123456789.,&|) -+e_timskp", max_size=40))
def test_any_text_of_our_letters_is_a_schedule_or_one_error(text: str) -> None:
    with suppress(ScheduleError):
        one = schedule(text)
        assert schedule(str(one)) == one


TEXTS = [
    "every(5, 3)",
    "steps(0, 4, 8)",
    "steps()",
    "times(20)",
    "geometric(100, 1.2)",
    "seconds(0.5)",
    "keep(256)",
    "keep(8, -3)",
    "between(-5, 10)",
    "every(5) & between(0, 10)",
    "every(5) | steps(1, 2)",
    "include_first(every(5))",
    "include_last(every(5) | times(3))",
]


def test_streams_have_the_same_names_in_another_process() -> None:
    script = (
        "import sys; from notebook_probe.schedules import schedule; "
        "print(*[schedule(text).stream for text in sys.argv[1:]], sep='\\n')"
    )
    command = [sys.executable, "-c", script, *TEXTS]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "4711"}
    )
    own = [schedule(text).stream for text in TEXTS]
    assert done.stdout.split() == own
    assert len(set(own)) == len(TEXTS)


def test_streams_of_every_are_called_as_they_always_were() -> None:
    assert Every(5).stream == "every_5"
    assert Every(5, 12).stream == "every_5_2"
    assert Every(1).stream == "every_1"


def test_streams_are_readable_where_the_numbers_are_few_and_whole() -> None:
    named = {one.stream for one in (Times(20), KeepN(8, -3), between(1, 2), Seconds(30))}
    assert named == {"times_20", "keep_8_before_3", "between_1_2", "seconds_30"}
