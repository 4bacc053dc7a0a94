"""Mark listed cases slow, and find quick ones that take more than a tenth of a second.

``--pace=check`` (`make test`) marks such a case slow, or fails over it if it takes twice as long.
Each is first run once more at its place, and then measured alone, so that neither a busy machine
nor an import that came first decides.
``--pace=report`` (`.ci/run`) only lists what was found: whether a change may land does not depend
on how fast a machine was. ``--pace=measure`` runs every case several times and writes what the
fastest pass took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.pace import slow_list
from tests.pace.clock import calibrated, slowness
from tests.pace.slow_list import FOUND, LIMIT_S, MARKED

PASSES = 3  # a case is measured until one pass is well below the limit, at most so often
SLOW_S = 0.8 * LIMIT_S
"""From here on a case is marked: one that is near the limit would be found now and then."""
FAILS_S = 2 * LIMIT_S
"""What takes so long fails the run; a case below is marked slow by it."""
MOST = 6
"""Suspects that are measured again after a run: the slowest. The next run finds others."""
NOT_QUICK = ("slow", "docs")  # tests of the site run in CI alone
KEY = "too slow"
CASE = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pace", "the limit of a quick test")
    group.addoption("--pace", choices=("off", "check", "report", "measure"), default="off")
    group.addoption("--pace-file", type=Path, help="where --pace=measure writes seconds by case")
    group.addoption("--slow-in", type=Path, help="run slow tests only of the files listed here")


def pytest_configure(config: pytest.Config) -> None:
    pace = config.getoption("pace")
    is_worker = hasattr(config, "workerinput")
    if pace in ("check", "report"):
        config.pluginmanager.register(Stopwatch(), "pace-stopwatch")
        if not is_worker:
            referee = Referee() if pace == "check" else Reporter()
            config.pluginmanager.register(referee, "pace-referee")
    elif pace == "measure":
        config.pluginmanager.register(Measurement(config.getoption("pace_file")), "pace-measure")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    listed = slow_list.read(config.rootpath / MARKED)
    for item in items:
        item.stash[CASE] = item.nodeid  # to which xdist adds a group later
        if item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
    if (chosen := config.getoption("slow_in")) is not None:
        leave_out_slow(config, items, tuple(chosen.read_text("utf-8").split()))


def leave_out_slow(config: pytest.Config, items: list[pytest.Item], paths: tuple[str, ...]) -> None:
    """Deselect slow tests outside of these files and folders."""

    def stays(item: pytest.Item) -> bool:
        is_inside = item.path.relative_to(config.rootpath).as_posix().startswith(paths)
        return is_inside or item.get_closest_marker("slow") is None

    config.hook.pytest_deselected(items=[item for item in items if not stays(item)])
    items[:] = [item for item in items if stays(item)]


class Stopwatch:
    """Note on the last report of a case that it takes too long, set-up and all."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        name, hook = {"nodeid": item.nodeid, "location": item.location}, item.ihook
        hook.pytest_runtest_logstart(**name)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if is_quick(item) and (seconds := shortest(item, nextitem, reports)) > LIMIT_S:
            reports[-1].user_properties.append((KEY, [item.stash[CASE], seconds]))
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(**name)
        return True


def is_quick(item: pytest.Item) -> bool:
    """Return whether the limit holds for a case."""
    return not any(item.get_closest_marker(mark) for mark in NOT_QUICK)


def shortest(
    item: pytest.Item, nextitem: pytest.Item | None, reports: list[pytest.TestReport]
) -> float:
    """Return the seconds of a case that was run: if they are many, those of a faster second pass.

    An import and what a file's tests share are paid for by then. The last case of a file is not
    run again: what it shares is gone.
    """
    if (took := duration(reports)) <= LIMIT_S:
        return took
    took = calibrated(took, slowness())
    has_passed = all(report.passed for report in reports)
    if took > LIMIT_S and has_passed and nextitem is not None and nextitem.path == item.path:
        then = runtestprotocol(item, log=False, nextitem=nextitem)
        took = min(took, calibrated(duration(then), slowness()))
    return took


def duration(reports: Iterable[pytest.TestReport]) -> float:
    """Return the seconds of one pass of a case: its set-up, its call and its tear-down."""
    return sum(report.duration for report in reports)


class Reporter:
    """List the quick cases that took too long, at the end of the run."""

    def __init__(self) -> None:
        self.over: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            for key, found in report.user_properties:
                if key == KEY and isinstance(found, list):
                    case, seconds = found
                    self.over[case] = seconds

    @pytest.hookimpl(trylast=True)  # below the slowest durations, where it is read
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.over:
            return
        terminalreporter.section("quick cases that take more than a tenth of a second")
        for case, seconds in sorted(self.over.items(), key=lambda pair: -pair[1]):
            terminalreporter.line(f"{seconds:6.2f} s  {self.verdict(case)}  {case}")
        for line in self.advice():
            terminalreporter.line(line)

    def verdict(self, case: str) -> str:
        """Return what becomes of a case, in a word of fixed width."""
        return "listed"

    def advice(self) -> Iterable[str]:
        """Yield what can be done about the list."""
        yield "`make test` measures each alone and marks it, or fails over it."


class Referee(Reporter):
    """Mark a case slow that takes too long when measured alone; fail the session over a long one.

    A case near the limit is only marked: on another machine it may be found, or not.
    """

    @property
    def failed(self) -> list[str]:
        return [case for case, seconds in self.over.items() if seconds > FAILS_S]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.over:
            return
        root = session.config.rootpath
        slowest = sorted(self.over, key=self.over.__getitem__)[-MOST:]
        alone = measured(slowest, root)
        self.over = {case: seconds for case, seconds in alone.items() if seconds > LIMIT_S}
        marked = self.over.keys() - self.failed
        if marked:
            slow_list.write(slow_list.read(root / MARKED) | marked, root / MARKED)
        slow_list.write(self.failed, root / FOUND)
        if self.failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def verdict(self, case: str) -> str:
        return "fails " if case in self.failed else "marked"

    def advice(self) -> Iterable[str]:
        yield f"Marked ones are slow from now on: commit {MARKED}."
        if self.failed:
            yield "Make the others faster, or mark them slow: make mark-slow"


class Measurement:
    """Run each case several times and write what its fastest pass took.

    The first pass pays for imports and for fixtures that several cases share.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        passes = list[float]()
        while len(passes) < PASSES:
            # What the file shares stays for the next pass, which is followed by "its parent".
            log, following = not passes, item.parent
            reports = runtestprotocol(item, log=log, nextitem=following)  # type: ignore[arg-type]
            passes.append(calibrated(duration(reports), slowness()))
            if passes[-1] < SLOW_S or any(report.failed for report in reports):
                break
        item.session._setupstate.teardown_exact(nextitem)
        self.seconds[item.stash[CASE]] = min(passes)
        return True

    def pytest_sessionfinish(self) -> None:
        self.file.write_text(json.dumps(self.seconds), encoding="utf-8")


def measured(cases: Iterable[str], root: Path) -> dict[str, float]:
    """Return the seconds of each case, measured one after the other in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file, arguments = Path(folder) / "seconds.json", Path(folder) / "cases.txt"
        arguments.write_text("\n".join(cases), encoding="utf-8")  # too many for a command line
        command = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses=0", "-p", __name__]
        command += ["--pace=measure", f"--pace-file={file}", f"@{arguments}"]
        environment = {
            name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_")
        }
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, env=environment, cwd=root)
        found: dict[str, float] = json.loads(file.read_text("utf-8"))
        return found
