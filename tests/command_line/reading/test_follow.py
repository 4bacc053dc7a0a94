"""``nbp follow``: one JSON object per line, and always an end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.alerts.alert import ALERT
from notebook_probe.command_line.reading import follow
from notebook_probe.record import RecordWriter
from tests.command_line.reading.build import GONE, MODULES, SPIKE, build, losses, write
from tests.command_line.reading.conftest import Asked, strict_json

Followed = Callable[..., tuple[int, list[dict[str, Any]]]]


@pytest.fixture
def lines(ask: Asked) -> Followed:
    """The exit code and the lines of `follow`."""

    def followed(*words: str) -> tuple[int, list[dict[str, Any]]]:
        code, out, _ = ask("follow", *words)
        return code, [strict_json(line) for line in out.splitlines()]

    return followed


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[RecordWriter]:
    """A record that this process writes: ten steps so far."""
    with RecordWriter(tmp_path / "growing.zarr", title="growing", modules=MODULES) as writer:
        write(writer, 0, 10)
        writer.flush_or_raise()
        yield writer


def meanwhile(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Do one act at each pause of `follow`, in place of the pause."""
    left = iter(acts)
    monkeypatch.setattr(follow, "sleep", lambda _: next(left)())


def grow(writer: RecordWriter, first: int, stop: int) -> None:
    write(writer, first, stop)
    writer.flush_or_raise()


def test_a_finished_run_has_its_alerts_and_an_end(lines: Followed, known: str) -> None:
    code, told = lines(known)
    assert code == 0
    assert [one["kind"] for one in told] == ["start", "alert", "alert", "alert", "end"]
    assert told[0]["state"] == "finished"
    rules = [one["alert"]["rule"] for one in told[1:-1]]
    assert sorted(rules) == ["loss_spike", "nonfinite_output", "unused"]
    assert (told[-1]["reason"], told[-1]["met"], told[-1]["steps"]) == ("finished", None, 400)


@pytest.mark.parametrize(
    ("until", "met"),
    [
        ("alert", "alert"),
        ("severe | finished", "severe"),
        ("finished", "finished"),
        ("step>=399", "step>=399"),
        ("step>=400", None),
    ],
)
def test_a_condition_that_is_met_is_code_3(
    lines: Followed, known: str, until: str, met: str | None
) -> None:
    code, told = lines(known, "--until", until)
    assert (code, told[-1]["met"]) == (3 if met else 0, met)
    assert told[-1]["reason"] == ("until" if met else "finished")


def test_alerts_before_a_step_are_left_out(lines: Followed, known: str) -> None:
    code, told = lines(known, "--since", "301", "--until", "alert")
    assert (code, [one["kind"] for one in told]) == (0, ["start", "end"])


def test_a_run_is_followed_until_its_first_alert(
    lines: Followed, growing: RecordWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def warn() -> None:
        growing.event(15, "attach", "attached: fc1 · rank")
        growing.event(SPIKE.step, ALERT, SPIKE.text, SPIKE.detail)
        grow(growing, 20, 30)

    meanwhile(monkeypatch, lambda: grow(growing, 10, 20), warn)
    code, told = lines(str(tmp_path / "growing.zarr"), "--until", "alert", "--every", "0")
    assert code == 3
    assert [one["kind"] for one in told] == [
        "start",
        "progress",
        "event",
        "alert",
        "progress",
        "end",
    ]
    assert (told[0]["state"], told[0]["steps"]) == ("running", 10)
    assert (told[1]["steps"], told[1]["loss"]) == (20, float(losses()[19]))
    assert told[2]["event"] == "attach"
    assert told[3]["alert"]["rule"] == "loss_spike"
    assert (told[-1]["reason"], told[-1]["steps"], told[-1]["state"]) == ("until", 30, "running")


def test_a_run_that_has_not_begun_is_waited_for(
    lines: Followed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "later.zarr"
    meanwhile(monkeypatch, place.mkdir, lambda: build(place))
    code, told = lines(str(place), "--wait", "60", "--until", "finished")
    assert (code, told[-1]["steps"]) == (3, 400)
    assert lines(str(tmp_path / "never.zarr"), "--wait", "0") == (2, [])


def test_what_a_run_writes_last_is_told_before_its_end(
    lines: Followed, growing: RecordWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def end() -> None:
        growing.event(GONE.step, ALERT, GONE.text, GONE.detail)
        growing.close()

    meanwhile(monkeypatch, end)
    code, told = lines(str(tmp_path / "growing.zarr"), "--until", "severe|finished")
    assert (code, told[-1]["met"]) == (3, "severe")
    assert [one["kind"] for one in told] == ["start", "alert", "end"]


def test_a_time_limit_ends_it(lines: Followed, growing: RecordWriter, tmp_path: Path) -> None:
    code, told = lines(str(tmp_path / "growing.zarr"), "--timeout", "0", "--until", "finished")
    assert (code, told[-1]["reason"], told[-1]["state"]) == (0, "timeout", "running")


def test_a_killed_run_is_an_end(lines: Followed, growing: RecordWriter, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "growing.zarr", tmp_path / "killed.zarr")
    code, told = lines(str(tmp_path / "killed.zarr"), "--until", "finished")
    assert (code, told[-1]["reason"], told[-1]["state"]) == (0, "killed", "killed")


def test_an_interrupt_has_an_end_too(
    lines: Followed, growing: RecordWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    meanwhile(monkeypatch, interrupt)
    code, told = lines(str(tmp_path / "growing.zarr"))
    assert (code, told[-1]["reason"]) == (130, "interrupted")


def test_a_record_that_is_spoiled_meanwhile_is_an_end_and_an_error(
    lines: Followed, growing: RecordWriter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoiled = tmp_path / "growing.zarr" / "zarr.json"
    meanwhile(monkeypatch, lambda: spoiled.write_text("{"))
    code, told = lines(str(tmp_path / "growing.zarr"))
    assert (code, told[-1]["reason"]) == (2, "unreadable")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--until", "alrt"], "'alrt' is no condition; close: 'alert'"),
        (["--until", "step>20"], "close: 'step>=100'"),
        (["--until", ""], "'' is no condition"),
        (["--timeout", "soon"], "invalid seconds value"),
        (["--timeout", "nan"], "invalid seconds value"),
    ],
)
def test_what_cannot_be_followed_is_code_2(
    ask: Asked, known: str, words: list[str], says: str
) -> None:
    code, out, err = ask("follow", known, *words)
    assert (code, out) == (2, "")
    assert says in err
