"""Running a sweep: in processes, gone on with, with failures kept, interrupted."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

import notebook_probe as nbp
from notebook_probe.experiment.sweep import Configuration
from notebook_probe.experiment.sweep.outcome import OUTPUT, read_outcome
from notebook_probe.experiment.sweep.results import SweepResults
from tests.experiment.sweep.trainings import recorded, told

DEPTHS = nbp.sweep({"model.depth": [1, 3, 4]})


class Ran(NamedTuple):
    folder: Path
    results: SweepResults
    said: str


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Three at a time: to begin a process takes longer than all else here."""
    folder = tmp_path_factory.mktemp("sweep")
    said = StringIO()
    with redirect_stdout(said):
        results = DEPTHS.run(told, processes=3, folder=folder)
    return Ran(folder, results, said.getvalue())


@pytest.mark.slow
def test_one_that_fails_or_is_killed_ends_no_other_and_its_error_is_kept(ran: Ran) -> None:
    results = ran.results
    assert results["state"] == ["finished", "failed", "failed"]
    assert results["result.twice"] == [2, None, None]
    assert results["error"][1] == "ValueError: no depth of 3"
    assert results["error"][2] == "the process ended with exit code -9"
    assert "trainings.py" in results.errors["depth 3"]
    assert "traceback" not in repr(results)
    assert results["result.process"][0] != os.getpid()
    assert "depth 3: failed in" in ran.said
    assert "3 of 3: " in ran.said
    written = (ran.folder / DEPTHS[1].id / OUTPUT).read_text()
    assert written.startswith("training depth 3\nTraceback")


def test_started_again_only_what_has_not_finished_is_trained(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = (ran.folder / DEPTHS[0].id / "outcome.json").read_bytes()
    longer = nbp.sweep({"model.depth": [1, 3, 2]})
    again = longer.run(told, processes=0, folder=ran.folder)
    assert again["result.twice"] == [2, None, 4]
    assert again["state"] == ["finished", "failed", "finished"]
    assert (ran.folder / DEPTHS[0].id / "outcome.json").read_bytes() == finished
    said = capsys.readouterr()
    assert "1 of 3 have finished before" in said.out
    assert said.out.count("training depth") == 2
    assert "no depth of 3" in said.err


def test_records_in_the_folder_of_a_configuration_are_in_its_row(tmp_path: Path) -> None:
    results = nbp.sweep({"lr": [0.1, 0.2]}).run(recorded, processes=0, folder=tmp_path)
    assert results["steps"] == [4, 4]
    assert results["config.lr"] == [0.1, 0.2]
    assert results["name"] == ["lr 0.1", "lr 0.2"]
    first, last = results["loss.first"], results["loss.last"]
    assert first[0] == first[1], "of one seed"
    for lr, before, after in zip([0.1, 0.2], first, last, strict=True):
        assert after == pytest.approx(before * (1 - 8 * lr) ** 6, rel=1e-4)


def test_what_was_not_run_waits(tmp_path: Path) -> None:
    assert DEPTHS.results(tmp_path)["state"] == ["waiting"] * 3


def test_a_function_that_no_other_process_finds_is_refused_before_any_is_begun(
    tmp_path: Path,
) -> None:
    def inside(configuration: object) -> None: ...

    for function in (inside, lambda _: 3):
        with pytest.raises(ValueError, match="processes=0"):
            DEPTHS.run(function, folder=tmp_path / "never")
    assert not (tmp_path / "never").exists()
    results = nbp.sweep({"depth": [1]}).run(lambda _: 3, processes=0, folder=tmp_path)
    assert results["result.value"] == [3]
    with pytest.raises(ValueError, match="0 or more"):
        DEPTHS.run(told, processes=-1)


INTERRUPTED = """
import signal
import sys
import notebook_probe as nbp
from notebook_probe.experiment.sweep.results import SweepResults
from tests.experiment.sweep.trainings import waits

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's background
    try:
        nbp.sweep({"depth": [1, 2, 3]}).run(waits, processes=2, folder=sys.argv[1])
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.slow
def test_an_interruption_ends_what_was_begun_and_nothing_else(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    sweeping = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "sweep")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        begun = wait_begun(tmp_path / "sweep", 2)
        sweeping.send_signal(signal.SIGINT)  # to the parent alone, as a kernel does
        said, _ = sweeping.communicate(timeout=60)
        assert said == "interrupted\n"
        assert not any(map(is_alive, begun))
        assert other.poll() is None
        assert all(read_outcome(one) is None for one in (tmp_path / "sweep").iterdir())
    finally:
        other.communicate(b"\n")
        sweeping.kill()


def wait_begun(folder: Path, n: int) -> list[int]:
    """The processes that say that they train."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [one.read_text() for one in folder.glob("*/begun")]
        if len(found) >= n and all(found):
            return [int(one) for one in found]
        time.sleep(0.02)
    raise AssertionError("they have not begun")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def outcome_of(depth: Configuration) -> object:
    """Results of every kind, one per depth."""
    returned = [math.nan, -math.inf, 0.5, {"acc": math.inf}, None]
    if depth["depth"] == len(returned):
        raise ValueError("first\nsecond")
    return returned[depth["depth"]]


def test_numbers_that_are_not_finite_and_errors_of_many_lines_are_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = nbp.sweep({"depth": [*range(6)]}).run(outcome_of, processes=0, folder=tmp_path)
    assert str(found["result.value"]) == "[nan, -inf, 0.5, None, None, None]"
    assert found["result.acc"] == [None, None, None, math.inf, None, None]
    assert found["error"] == [*[None] * 5, "ValueError: first"]
    assert found.errors["depth 5"].endswith("ValueError: first\nsecond\n")
    assert "only in some: error ValueError: first (1 of 6), result.acc inf (1 of 6)" in repr(found)
    assert len(repr(found).splitlines()) == 8
    assert capsys.readouterr().out.splitlines()[-1].endswith("s: ValueError: first")


def test_what_is_no_function_is_refused_before_any_is_trained(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"run\(3\): a function of a configuration is expected"):
        nbp.sweep({"depth": [1]}).run(3, folder=tmp_path / "sweep")  # type: ignore[arg-type]
    assert not (tmp_path / "sweep").exists()
