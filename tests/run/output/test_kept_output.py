"""The last lines of a run: in memory, in the record, with steps and with bounds."""

from __future__ import annotations

import gc
import json
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.printed_lines import PrintedLine, printed_lines
from notebook_probe.run.output import kept_output
from tests.models import equal, floats, made, mlp, sgd, train_step

batch = floats(5, 4)


def trained(store: Path, *, keep: bool = True, n_steps: int = 6) -> torch.nn.Module:
    """Train and print a line at each step."""
    model = made(mlp)
    optimizer = sgd(model)
    with nbp.watch(model, optimizer, store, probes=None) as run:
        if keep:
            nbp.keep_output(run)
        for step in range(n_steps):
            train_step(model, optimizer, batch(step))
            print(f"done {step}")
    return model


def kept(store: Path, most: int = 200) -> list[PrintedLine]:
    return printed_lines(nbp.open_run(store).events, most)


def test_the_record_has_the_lines_with_the_updates_completed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(tmp_path / "a.zarr")
    expected = [PrintedLine(step + 1, f"done {step}") for step in range(6)]
    assert kept(tmp_path / "a.zarr") == expected
    assert kept(tmp_path / "a.zarr", 2) == expected[-2:]
    assert "done 5\n" in capsys.readouterr().out, "the output is the user's"


def test_without_asking_nothing_is_kept_and_no_stream_is_touched(tmp_path: Path) -> None:
    trained(tmp_path / "a.zarr", keep=False)
    assert kept(tmp_path / "a.zarr") == []
    assert "write" not in vars(sys.stdout)


def test_keeping_the_output_leaves_training_and_streams_as_they_are(tmp_path: Path) -> None:
    one = trained(tmp_path / "a.zarr")
    state = torch.get_rng_state()
    other = trained(tmp_path / "b.zarr", keep=False)
    assert equal(one, other)
    assert torch.equal(state, torch.get_rng_state())
    assert not {"write"} & {*vars(sys.stdout), *vars(sys.stderr)}


def test_both_streams_and_an_unended_line_are_kept_and_twice_is_once(tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        nbp.keep_output(run)
        nbp.keep_output(run)
        print("out")
        print("err", file=sys.stderr)
        sys.stderr.write("\r 10%\r 90%")
        shown = [line.text for line in run.controls.output.lines()]
    assert shown == ["out", "err", " 90%"]
    assert [line.text for line in kept(tmp_path / "a.zarr")] == ["out", "err", " 90%"]


def test_of_much_output_the_record_has_the_newest_in_bounded_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_output, "EVERY_S", 0.0)
    monkeypatch.setattr(kept_output, "SHARE", 0.0)
    store = tmp_path / "a.zarr"
    model = made(mlp)
    with nbp.watch(model, store=store, probes=None) as run:
        nbp.keep_output(run)
        for k in range(40):
            for i in range(100):
                print(f"{k} {i}", "x" * 300)
            run.flush()
        assert len(run.controls.output.lines()) == kept_output.MOST_LINES
    events = [event for event in nbp.open_run(store).events if event.kind == "output"]
    assert len(events) > 10
    sizes = [len(event.text) for event in events]
    most = kept_output.ROOM // kept_output.PART
    assert max(sizes) <= most
    assert sizes[0] > 0.9 * most
    assert sum(sizes) <= kept_output.ROOM + len(sizes) * kept_output.LEAST
    assert sizes[-1] < sizes[0]
    n_lines = sum(event.text.count("\n") + 1 for event in events)
    assert n_lines + sum(json.loads(event.detail)["left_out"] for event in events) == 4000
    assert kept(store, 1)[0].text.startswith("39 99 x")


def test_output_is_heard_again_where_another_program_has_restored_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        original = sys.stdout.write
        nbp.keep_output(run)
        print("one")
        monkeypatch.setattr(sys.stdout, "write", original)
        print("lost")
        run.flush()
        print("two")
        run.flush()
        print("three")
        assert [line.text for line in run.controls.output.lines()] == ["one", "two", "three"]


class Shell:
    """IPython's shell as far as cells begin in it."""

    def __init__(self) -> None:
        self.calls: list[Callable[..., None]] = []
        self.events = self

    def register(self, event: str, call: Callable[..., None]) -> None:
        assert event == "pre_run_cell"
        self.calls.append(call)

    def unregister(self, event: str, call: Callable[..., None]) -> None:
        self.calls.remove(call)


def test_each_cell_of_a_notebook_is_heard_from_its_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "a.zarr", probes=None)
    original = sys.stdout.write
    nbp.keep_output(run)
    monkeypatch.setattr(sys.stdout, "write", original)
    [begins] = shell.calls
    begins(None)
    print("one")
    assert [line.text for line in run.controls.output.lines()] == ["one"]
    run.close()
    del run, model
    gc.collect()
    begins(None)
    assert shell.calls == []


def test_a_stream_that_cannot_be_heard_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Odd:
        __slots__ = ()

        def write(self, text: str) -> int:
            return len(text)

    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None) as run:
        monkeypatch.setattr(sys, "stderr", Odd())
        nbp.keep_output(run)
        print("out")
        problem = run.controls.output.problem
        assert [line.text for line in run.controls.output.lines()] == ["out"]
    assert problem.startswith("sys.stderr is not kept: ")


def test_a_stream_does_not_hold_a_run_that_is_gone(tmp_path: Path) -> None:
    run = nbp.watch(model := made(mlp), store=tmp_path / "a.zarr", probes=None)
    nbp.keep_output(run)
    gone = weakref.ref(run)
    run.close()
    del run, model
    gc.collect()
    assert gone() is None


def test_a_damaged_event_has_its_lines_at_its_own_step() -> None:
    for detail in ("", "[]", "{}", '{"steps": [1]}', '{"steps": ["x", 2]}', "{"):
        events = [Event(7, 0, "output", "a\nb", detail)]
        assert printed_lines(events, 9) == [PrintedLine(7, "a"), PrintedLine(7, "b")]
