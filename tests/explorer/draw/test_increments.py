"""Of a frame only what is new is sent, and what a view makes of it is the frame that was drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.explorer.fakes import FakeControls, FakeStream
from tests.explorer.talk import Talk

PLOTS = ("heat", "lines")
MODULES = ("a", "b", "c")
SERIES = [(module, "grad_norm") for module in MODULES]

n_new = st.sampled_from([0, 1, 7, 90, 800])
changes: dict[str, st.SearchStrategy[Any]] = {
    "series": st.lists(st.sampled_from(SERIES), unique=True),
    "window": st.sampled_from([None, (0.0, 40.0), (13.0, 500.0)]),
    "smooth": st.sampled_from([0.0, 0.9]),
    "log_x": st.booleans(),
    "cells": st.sampled_from(["max", "mean"]),
    "x_axis": st.sampled_from(["step", "time"]),
    "rows": st.sampled_from([[], ["b"], ["a", "c"]]),
}
chosen = st.one_of([st.tuples(st.just(name), values) for name, values in changes.items()])
moments = st.lists(
    st.tuples(n_new, st.none() | chosen, st.sampled_from([700, 700, 700, 130])),
    min_size=1,
    max_size=8,
)


class Twice:
    """A run that two panels show: one is sent what is new, of the other every view is a new one."""

    def __init__(self) -> None:
        self.told = Talk(FakeControls())
        self.whole = Talk(FakeControls(), of_run=self.told)
        self.told.says("hello", view="x")
        self.random = np.random.default_rng(0)

    def trains(self, n: int) -> None:
        stream = self.told.stream
        values = self.random.lognormal(size=(n, len(MODULES))).astype(np.float32)
        values[self.random.random(values.shape) < 0.02] = np.nan
        stream.append(range(stream.n_rows, stream.n_rows + n), grad_norm=values)

    def changes(self, name: str, value: object, width: int) -> None:
        for talk in (self.told, self.whole):
            talk.selects(**{name: value})
            widths = {"lines": width, "heat": width}
            talk.says("viewport", view="x", widths=widths, pixel_ratio=1.0)

    def agree(self) -> None:
        self.whole.says("hello", view="x")
        self.whole.is_told()
        self.told.is_told()
        for kind in PLOTS:
            if any(message["type"] == kind for message, _ in self.whole.heard):
                assert frame_of(self.told, kind) == frame_of(self.whole, kind)
        self.told.acknowledges()


def frame_of(talk: Talk, kind: str) -> tuple[dict[str, Any], list[bytes]]:
    message, buffers = next(one for one in reversed(talk.heard) if one[0]["type"] == kind)
    fields = {name: value for name, value in message.items() if name not in ("seq", "averaged")}
    return fields, [bytes(buffer) for buffer in buffers]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(moments)
def test_what_a_view_has_is_always_what_a_new_view_is_sent(
    moments: list[tuple[int, tuple[str, object] | None, int]],
) -> None:
    twice = Twice()
    for n, change, width in moments:
        twice.trains(n)
        if change is not None:
            twice.changes(*change, width)
        twice.agree()


@pytest.fixture
def talk() -> Talk:
    talk = Talk(FakeControls())
    talk.stream.append(range(1000), grad_norm=np.random.default_rng(1).lognormal(size=(1000, 3)))
    talk.says("hello", view="x")
    talk.selects(series=SERIES)
    talk.is_told()
    talk.acknowledges()
    return talk


def grows(talk: Talk) -> dict[str, int]:
    """The bytes of the frames of a few more rows."""
    n = talk.stream.n_rows
    talk.stream.append(range(n, n + 5), grad_norm=1.0)
    before = len(talk.sent)
    talk.is_told()
    return {
        message["type"]: sum(buffer.nbytes for buffer in buffers)
        for message, buffers in talk.sent[before:]
        if message["type"] in PLOTS
    }


def whole_size(talk: Talk, kind: str) -> int:
    return sum(len(buffer) for buffer in frame_of(talk, kind)[1])


def test_a_run_that_grows_costs_what_it_has_gained_not_its_picture(talk: Talk) -> None:
    sizes = grows(talk)
    for kind in PLOTS:
        assert 0 < sizes[kind] < whole_size(talk, kind) / 30


def test_after_a_frame_that_nobody_has_painted_the_next_is_whole(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    grows(talk)
    monkeypatch.setattr("notebook_probe.explorer.messages.view_registry.PATIENCE_S", 0.0)
    sizes = grows(talk)
    assert sizes == {kind: whole_size(talk, kind) for kind in PLOTS}


def test_a_new_view_is_sent_the_whole(talk: Talk) -> None:
    grows(talk)
    talk.acknowledges()
    talk.says("hello", view="y")
    sizes = grows(talk)
    assert sizes == {kind: whole_size(talk, kind) for kind in PLOTS}


def test_rows_that_come_later_are_rows_of_the_next_frame(talk: Talk) -> None:
    late = FakeStream("late", ["(root)"], ["grad_norm"])
    late.append([1001], grad_norm=3.0)
    talk.source.given.append(late)
    sizes = grows(talk)
    assert talk.last("heat")["rows"] == ["(root)", *MODULES]
    assert sizes["heat"] == whole_size(talk, "heat")
