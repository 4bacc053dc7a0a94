"""A run on a GPU tells most when it is cut off, and its end says whether a check failed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.gpu import __main__ as gpu
from tools.gpu import card, report, wheels
from tools.gpu.parts import CASES, PARTS, ROOT, Part, marked_files
from tools.gpu.report import Outcome, failed, read, table

VERBOSE = """
tests/gpu/test_values.py::test_every[cuda-gpt block-fp32] PASSED         [ 10%]
tests/gpu/test_values.py::test_every[cuda-mlp-bf16] FAILED               [ 20%]
tests/gpu/test_training.py::test_memory SKIPPED (no CUDA device)         [ 30%]
tests/gpu/test_training.py::test_gra"""


def part(name: str, text: str, limit_s: float = 60.0) -> Part:
    return Part(name, "", limit_s, lambda device, folder: [sys.executable, "-c", text, str(folder)])


def test_all_parts_together_take_nine_minutes_at_most() -> None:
    assert sum(one.limit_s for one in PARTS.values()) <= gpu.TOTAL_S <= 9 * 60


def test_every_part_runs_from_the_checkout_with_the_python_that_runs_it(tmp_path: Path) -> None:
    for one in PARTS.values():
        for device in ("cuda", "cpu"):
            command = one.command(device, tmp_path)
            assert command[:2] == [sys.executable, "-m"]
            assert command[2] in ("pytest", "benchmarks.gpu", "notebook_probe", "tools.gpu.card")


def test_every_file_with_a_case_for_a_gpu_is_run() -> None:
    found = marked_files()
    assert ROOT / "tests/run/test_cuda.py" in found
    assert ROOT / "tests/graph/test_cuda.py" in found
    assert not any(CASES in file.parents for file in found)


def test_parts_run_in_order_and_what_they_wrote_is_in_the_table(tmp_path: Path) -> None:
    text = (
        "import json, pathlib, sys; rows = [{'variant': 'idle', 'wall': 1.0125, 'met': 'yes'}];"
        "(pathlib.Path(sys.argv[1]) / 'bench.json').write_text(json.dumps({'rows': rows}))"
    )
    outcomes = gpu.run([part("first", "print('x')"), part("bench", text)], "cpu", tmp_path, 60)
    assert [one.result for one in outcomes] == ["green", "green"]
    assert "| idle | 1.012 | yes |" in table(outcomes)
    assert (tmp_path / "table.md").read_text() == table(outcomes) + "\n"
    assert [one["name"] for one in json.loads((tmp_path / "gpu.json").read_text())] == [
        "first",
        "bench",
    ]
    assert not failed(outcomes)


def test_a_part_finds_nothing_of_the_run_before(tmp_path: Path) -> None:
    text = "import pathlib, sys; pathlib.Path(sys.argv[1], 'again').mkdir(); print(1)"
    for _ in range(2):
        (outcome,) = gpu.run([part("again", text)], "cpu", tmp_path, 60)
        assert outcome.result == "green"


def test_a_part_is_ended_at_its_limit_and_the_next_one_runs(tmp_path: Path) -> None:
    slow = part("slow", "import time; print('begun', flush=True); time.sleep(600)", 0.5)
    ones = gpu.run([slow, part("next", "print('x')")], "cpu", tmp_path, 60)
    assert [one.result for one in ones] == ["too long", "green"]
    assert failed(ones)


def test_no_part_is_begun_when_the_time_is_over(tmp_path: Path) -> None:
    ones = gpu.run([part("late", "print('x')")], "cpu", tmp_path, 1.0)
    assert [one.result for one in ones] == ["no time left"]
    assert failed(ones)
    assert "| late | no time left |" in (tmp_path / "table.md").read_text()


def test_tests_that_were_cut_off_count_as_far_as_they_came(tmp_path: Path) -> None:
    (tmp_path / "tests.txt").write_text(VERBOSE)
    found = read("tests", tmp_path)
    assert (found["passed"], found["failed"], found["skipped"]) == (1, 1, 1)
    shown = table([Outcome("tests", "too long", 170.0, found)])
    assert "1 passed, 1 failed, 1 skipped" in shown
    assert "* tests/gpu/test_values.py::test_every[cuda-mlp-bf16]" in shown


def test_a_missed_target_is_a_failed_check() -> None:
    rows = [{"variant": "default", "wall": 1.2, "met": "NO"}]
    assert failed([Outcome("bench", "green", 1.0, {"rows": rows})])
    assert "1 targets missed" in table([Outcome("bench", "green", 1.0, {"rows": rows})])


def test_a_file_that_is_cut_off_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text('{"rows": [')
    assert read("bench", tmp_path) == {}


def test_an_unknown_part_is_refused_with_those_that_are_allowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu", "benchmark"])
    with pytest.raises(SystemExit):
        gpu.main()
    assert "no such part: benchmark; allowed: device, tests, " in capsys.readouterr().err


def test_missing_packages_are_named_and_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wheels, "NEEDED", ("not_there_at_all",))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["gpu", "--out", str(tmp_path), "--wheels", str(tmp_path)])
    assert gpu.main() == 2
    assert "missing: not_there_at_all" in capsys.readouterr().err
    assert not (tmp_path / "gpu.json").exists()


def test_wheels_are_installed_without_asking_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: asked.append(command))
    (tmp_path / "beside").mkdir()
    assert not wheels.install([tmp_path / "none", tmp_path / "beside"], tmp_path / "site")
    (tmp_path / "beside" / "zarr-3-py3-none-any.whl").touch()
    assert wheels.install([tmp_path / "none", tmp_path / "beside"], tmp_path / "site")
    (command,) = asked
    assert {"--no-index", "--no-deps", "--target"} <= {*command}
    assert command[-1].endswith("zarr-3-py3-none-any.whl")


def test_wheels_are_fetched_for_another_python_and_never_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: asked.append(command))
    wheels.download("3.12", tmp_path)
    (command,) = asked
    assert {"download", "--python-version=3.12", "--only-binary=:all:"} <= {*command}
    named = {requirement.partition(">")[0].replace("-", "_") for requirement in wheels.PACKAGES}
    assert {*wheels.NEEDED} - {"torch", "numpy", "xdist"} <= named
    assert "torch" not in named


def test_the_device_is_named_and_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["x", "--device", "cpu", "--json", str(tmp_path / "d.json")])
    assert card.main() == 0
    assert json.loads((tmp_path / "d.json").read_text())["computes"]
    assert "torch: 2." in capsys.readouterr().out
    assert report.read("d", tmp_path)["device"] == "cpu"
