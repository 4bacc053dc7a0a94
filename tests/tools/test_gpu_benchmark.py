"""The benchmark for a GPU measures each variant on a CPU, too, in small."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu
from benchmarks.gpu.variants import VARIANTS

pytestmark = pytest.mark.slow


def measured(folder: Path, *options: str) -> dict[str, Any]:
    parser = ArgumentParser()
    gpu.add_arguments(parser)
    given = ["--device", "cpu", "--seconds", "0", "--json", str(folder / "found.json"), *options]
    gpu.run(parser.parse_args(given))
    found: dict[str, Any] = json.loads((folder / "found.json").read_text("utf-8"))
    return found


def test_every_variant_has_a_line_with_ratios_and_kernels(tmp_path: Path) -> None:
    rows = measured(tmp_path, "--models", "MLP", "--precisions", "fp32")["rows"]
    assert [row["variant"] for row in rows] == [*VARIANTS]
    more = {row["variant"]: row["more"] for row in rows}
    assert all(row["wall"] > 0 for row in rows)
    assert more["idle"] == 0, "nothing due, nothing computed"
    assert more["items"] > 10 < more["histograms"]


@pytest.mark.parametrize("model", ["GPT-2 small", "ResNet-50"])
def test_every_model_runs_in_every_precision(model: str, tmp_path: Path) -> None:
    found = measured(tmp_path, "--models", model, "--variants", "every step")
    assert [row["precision"] for row in found["rows"]] == ["bf16", "fp32", "compiled"]


def test_lines_for_which_no_time_is_left_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured(tmp_path, "--models", "MLP", "--variants", "idle", "--within", "-1")
    assert found["rows"] == []
    assert found["no_time_for"] == ["MLP bf16 idle", "MLP fp32 idle", "MLP compiled idle"]
    assert "no time was left for: MLP bf16 idle" in capsys.readouterr().out
