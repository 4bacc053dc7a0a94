"""The page on DDP and FSDP: its script under torchrun, its reader in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.docs.running import blocks_of

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.mark.stories  # three interpreters that import torch
def test_the_script_records_on_every_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, reader, whole, _ = blocks_of("how_to/ddp_and_fsdp.md")
    (tmp_path / "train.py").write_text(script, "utf-8")
    done = subprocess.run(
        [sys.executable, *TORCHRUN, "train.py"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(reader.partition('nbp.open_run("runs/first.zarr/rank_00000")')[0] + whole, names)
    data = names["job"].data
    assert (data.sizes["rank"], data.sizes["step"]) == (2, 20)
    first, second = (data.sel(module="0").isel(rank=rank) for rank in range(2))
    assert np.array_equal(first.grad_norm, second.grad_norm)
    assert not np.array_equal(first.output_norm, second.output_norm)
