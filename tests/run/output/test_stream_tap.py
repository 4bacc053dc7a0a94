"""A tap hears what a stream has taken, and the stream stays the user's."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from notebook_probe.run.output.line_feed import LineFeed
from notebook_probe.run.output.stream_tap import StreamTap


def test_what_is_written_in_any_way_is_heard_after_the_stream_has_taken_it() -> None:
    stream = io.StringIO()
    heard: list[tuple[str, str]] = []
    handler = logging.StreamHandler(stream)
    StreamTap(stream, lambda text: heard.append((text, stream.getvalue())))
    print("loss", 0.5, file=stream)
    stream.writelines(["a\n", "b\n"])
    handler.emit(logging.makeLogRecord({"msg": "logged"}))
    assert "".join(text for text, _ in heard) == stream.getvalue() == "loss 0.5\na\nb\nlogged\n"
    assert all(taken.endswith(text) for text, taken in heard)


def test_a_broken_listener_never_raises_into_a_print(capsys: pytest.CaptureFixture[str]) -> None:
    def broken(text: str) -> None:
        raise RuntimeError(text)

    tap = StreamTap(sys.stdout, broken)
    print("still here")
    tap.close()
    assert capsys.readouterr().out == "still here\n"


def test_an_error_of_the_stream_is_the_users_and_nothing_is_heard() -> None:
    stream = io.StringIO()
    heard: list[str] = []
    StreamTap(stream, heard.append)
    with pytest.raises(TypeError, match="string argument expected"):
        stream.write(b"bytes")  # type: ignore[arg-type]
    assert heard == []


def test_a_stream_is_as_before_in_whatever_order_taps_are_closed() -> None:
    stream = io.StringIO()
    heard: dict[str, list[str]] = {"one": [], "other": []}
    one, other = (StreamTap(stream, heard[name].append) for name in heard)
    stream.write("a")
    one.close()
    stream.write("b")
    other.close()
    stream.write("c")
    assert heard == {"one": ["a"], "other": ["a", "b"]}
    assert "write" not in vars(stream)
    assert stream.getvalue() == "abc"


def test_a_wrapper_of_another_program_stays_and_later_taps_do_not_pile_up() -> None:
    stream = io.StringIO()
    tap = StreamTap(stream, str.upper)
    theirs: list[str] = []
    below = stream.write

    def write(text: str) -> int:
        theirs.append(text)
        return below(text)

    stream.write = write  # type: ignore[method-assign]
    tap.close()
    stream.write("a")
    for _ in range(3):
        StreamTap(stream, str.upper).close()
    assert stream.write is write
    assert (theirs, stream.getvalue()) == (["a"], "a")


def test_who_replaces_the_stream_for_a_while_takes_the_output_with_it() -> None:
    heard: list[str] = []
    tap = StreamTap(sys.stdout, heard.append)
    with contextlib.redirect_stdout(io.StringIO()) as taken:
        print("theirs")
    tap.close()
    assert (taken.getvalue(), heard) == ("theirs\n", [])


@contextlib.contextmanager
def teed(stream: io.StringIO, taken: list[str]) -> Iterator[None]:
    """Wrap ``write`` for a while, as IPython does during a cell."""
    original = stream.write

    def write(data: str, *args: Any, **kwargs: Any) -> int:
        written = original(data, *args, **kwargs)
        taken.append(data)
        return written

    stream.write = write  # type: ignore[method-assign]
    try:
        yield
    finally:
        stream.write = original  # type: ignore[method-assign]


def test_a_tap_knows_whether_a_wrapper_that_was_restored_has_dropped_it() -> None:
    stream, taken = io.StringIO(), list[str]()
    with teed(stream, taken):
        within = StreamTap(stream, str.upper)
        assert within.is_heard
    assert not within.is_heard
    between = StreamTap(stream, str.upper)
    with teed(stream, taken), teed(stream, taken):
        assert between.is_heard, "below both"
    assert between.is_heard


class Closed:
    """A stream that nothing can be set on."""

    __slots__ = ()

    def write(self, text: str) -> int:
        return len(text)


def test_a_stream_whose_write_cannot_be_wrapped_says_so() -> None:
    with pytest.raises((AttributeError, TypeError)):
        StreamTap(Closed(), str.upper)


@pytest.mark.parametrize(
    ("pieces", "lines", "rest"),
    [
        (["a\nb", "c\n"], ["a", "bc"], ""),
        (["a\r\n", "\r\n"], ["a", ""], ""),
        (["  1%\r 50%", "\r100%\n", "next"], ["100%"], "next"),
        (["1%\r"], [], "1%"),
        (["\x1b[1;31mred\x1b[0m \x1b]0;title\x07and\x1b[2K more\n"], ["red and more"], ""),
        (["\x1b[3", "1mred\n"], ["red"], ""),
        (["tab\there\x00\n"], ["tab here\N{REPLACEMENT CHARACTER}"], ""),
        (["<b>&\n"], ["<b>&"], ""),
        (["x" * 401 + "\n"], ["x" * 399 + "…"], ""),
        (["\N{GRINNING FACE}\n"], ["\N{GRINNING FACE}"], ""),
    ],
    ids=["lines", "windows", "bar", "open", "colors", "split", "control", "html", "long", "wide"],
)
def test_lines_are_as_a_terminal_shows_them(pieces: list[str], lines: list[str], rest: str) -> None:
    feed = LineFeed()
    found: list[Any] = [line for piece in pieces for line in feed.add(piece)]
    assert (found, feed.rest) == (lines, rest)


def test_a_line_that_never_ends_takes_bounded_memory() -> None:
    feed = LineFeed()
    for _ in range(100):
        feed.add("x" * 1000)
    assert len(feed.rest) == 400
    assert len(feed._open) == 10_000
