"""The benchmark of the training loop: every part measures something, however little it is given."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

import pytest

from benchmarks import loop


@pytest.mark.parametrize(
    ("part", "rows"), [("overhead", 1), ("step", 3), ("epochs", 5), ("checkpoint", 4)]
)
def test_each_part_prints_its_table(
    part: str, rows: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for absent in ("lightning", "ignite.engine", "accelerate"):
        monkeypatch.setitem(sys.modules, absent, None)
    parser = ArgumentParser()
    loop.add_arguments(parser)

    loop.run(parser.parse_args(["--parts", part, "--turns", "1", "--steps", "4", "--mb", "0.1"]))

    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + rows
    assert all(any(c.isdigit() for c in line) or "not installed" in line for line in lines[2:])
