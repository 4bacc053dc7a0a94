"""The code of docs/how_to/remote.md runs as it is printed, where that needs no network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import notebook_probe as nbp
from tests.models import floats, made, mlp, sgd, train

PAGE = (Path(__file__).parents[2] / "docs" / "how_to" / "remote.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
ELSEWHERE = ("s3://", "MyZarrStore", "torch.distributed", "# on every rank")


@pytest.mark.parametrize(
    "code", [block for block in BLOCKS if not any(text in block for text in ELSEWHERE)]
)
def test_a_block_of_the_page_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where the spool is
    model = made(mlp)
    optimizer = sgd(model)
    names: dict[str, Any] = {
        "nbp": nbp,
        "xr": xr,
        "model": model,
        "optimizer": optimizer,
        "train": lambda: train(model, optimizer, floats(5, 4), range(4)),
    }
    exec(code.replace('"head"', '"2"').replace("/data/first", f"{tmp_path}/first"), names)


def test_the_page_has_code_for_memory_and_for_versions() -> None:
    assert sum("memory://" in block for block in BLOCKS) == 1
    assert sum("Repository.open" in block for block in BLOCKS) == 1
