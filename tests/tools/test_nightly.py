"""A nightly run continues after failures, ends what takes too long, and counts every session."""

from __future__ import annotations

import fcntl
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools import nightly
from tools.nightly import PartOutcome, counts, run, table, targets


@pytest.fixture(autouse=True)
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(nightly, "OUTPUTS", tmp_path / "nightly")
    return tmp_path / "nightly"


def program(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


def test_every_command_that_runs_by_name_only_is_run() -> None:
    found = targets(nightly.MAKEFILE.read_text("utf-8"))
    assert {"test-crash", "test-kernels", "test-release", "test-stress", "test-gpu"} <= {*found}
    assert {"test", "test-slow", "test-changed", "test-docs", "test-python"}.isdisjoint(found)
    assert {*nightly.LIMITS} <= {*found}


def test_the_table_of_contributing_lists_every_command() -> None:
    page = (nightly.ROOT / "CONTRIBUTING.md").read_text("utf-8")
    listed = page.partition("### Run by name")[2].partition("###")[0]
    found = targets(nightly.MAKEFILE.read_text("utf-8"))
    assert [target for target in found if f"| `make {target}` |" not in listed] == []


def test_a_new_command_joins_by_its_name() -> None:
    assert targets("test: a\ntest-slow: a\ntest-new: a\n\tdo\n") == ["test-new"]


def test_the_counts_of_several_sessions_are_added() -> None:
    output = """
=========== 3 passed, 2 skipped, 7 deselected in 4.51s ===========
1 failed, 4 passed, 2 errors in 75.11s (0:01:15)
not a summary: 9 passed in all
"""
    assert counts(output) == Counter(passed=7, skipped=2, deselected=7, failed=3)


@pytest.mark.parametrize(("code", "result"), [(0, "green"), (3, "failed")])
def test_a_command_has_the_result_of_its_exit_code(code: int, result: str, outputs: Path) -> None:
    outcome = run("test-x", 60, program(f"print('1 passed in 0.1s'); raise SystemExit({code})"))
    assert (outcome.result, outcome.counts["passed"]) == (result, 1)
    assert (outputs / "test-x.txt").read_text().strip() == "1 passed in 0.1s"


def test_a_command_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    # A lock taken before a fork is held as long as one of the two processes lives.
    text = f"""
import fcntl, os, time
held = open({str(lock)!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
os.fork()
time.sleep(600)
"""
    assert run("test-x", 0.3, program(text)).result == "too long"
    with lock.open("w") as free:
        fcntl.flock(free, fcntl.LOCK_EX)


def test_the_run_continues_after_a_failure_and_ends_with_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], outputs: Path
) -> None:
    results = {"test-a": "failed", "test-b": "green"}
    outputs.mkdir()
    makefile = outputs / "Makefile"
    makefile.write_text("test-a:\ntest-b:\n", "utf-8")
    monkeypatch.setattr(nightly, "MAKEFILE", makefile)
    monkeypatch.setattr(
        nightly,
        "run",
        lambda target, _: PartOutcome(target, results[target], Counter(passed=2), 61),
    )
    monkeypatch.setattr(sys, "argv", ["nightly"])
    assert nightly.main() == 1
    assert (outputs / "table.md").read_text() in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["nightly", "b"])
    assert nightly.main() == 0


def test_an_unknown_part_is_refused_with_those_that_are_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["nightly", "kernel"])
    with pytest.raises(SystemExit):
        nightly.main()
    assert "no such part: kernel; allowed: stories, " in capsys.readouterr().err


def test_the_table_has_a_line_for_each_command() -> None:
    lines = table(
        [PartOutcome("test-a", "failed", Counter(passed=2, failed=1), 125.2)]
    ).splitlines()
    assert lines[2:] == ["| `make test-a` | failed | 2 | 1 | 0 | 2:05 min |"]
