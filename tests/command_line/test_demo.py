"""``demo`` in processes of its own, as somebody begins it who has just installed the package."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import notebook_probe as nbp
from tests.command_line.conftest import Said

DEMO = [sys.executable, "-u", "-m", "notebook_probe", "demo"]
NO_DISPLAY = {
    name: value
    for name, value in os.environ.items()
    if name not in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
}
BROWSER = "import pathlib, sys; pathlib.Path('opened').write_text(sys.argv[1])"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_it_trains_and_opens_its_report(tmp_path: Path) -> None:
    browser = tmp_path / "browser.py"
    browser.write_text(BROWSER)
    done = subprocess.run(
        [*DEMO, "--folder", "new/demo", "--steps", "24"],
        cwd=tmp_path,
        env={**NO_DISPLAY, "BROWSER": f"{sys.executable} {browser} %s"},
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = tmp_path / "new" / "demo" / "report.html"
    assert 'id="package"' in report.read_text("utf-8")
    assert (tmp_path / "opened").read_text() == report.resolve().as_uri()
    lines = done.stdout.splitlines()
    assert sum(line.startswith("step ") for line in lines) == 24
    record = nbp.open_run(tmp_path / "new" / "demo" / "run.zarr")
    assert record.data.sizes["step"] == 24


@pytest.mark.stories
def test_the_network_learns_and_a_rate_that_is_too_high_is_told_of(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--no-open"],
        cwd=tmp_path,
        env=NO_DISPLAY,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert (done.returncode, done.stderr) == (0, "")
    before, _, after = done.stdout.partition("does anyone notice?")
    assert "alert:" not in before
    assert "alert:" in after
    losses = [float(one) for one in re.findall(r"loss (\S+)", before)]
    assert losses[-1] < losses[0] - 1.5


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_interrupted_it_keeps_what_is_recorded_and_says_where(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [*DEMO, "--no-open", "--steps", "1000000", "--folder", "demo"],
        cwd=tmp_path,
        env=NO_DISPLAY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert running.stdout is not None
    assert any(line.startswith("step ") for line in iter(running.stdout.readline, ""))
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (130, "")
    assert "interrupted: what was recorded stays" in out
    assert str(tmp_path / "demo" / "report.html") in out
    assert nbp.open_run(tmp_path / "demo" / "run.zarr").data.sizes["step"] > 0


def test_nothing_of_anybodys_is_written_over(said: Said, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    code, out, err = said("demo", "--folder", str(tmp_path))
    assert (code, out) == (2, "")
    assert err.endswith("is not empty; --folder names another place\n")
    code, out, err = said("demo", "--folder", str(mine / "below"))
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said("demo", "--steps", "0")[0] == 2
    assert [*tmp_path.iterdir()] == [mine]
