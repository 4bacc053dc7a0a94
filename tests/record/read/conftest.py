"""Records to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy, to spoil, of the record that is the test file's fixture ``whole``."""
    return Path(shutil.copytree(whole, tmp_path / "run.zarr"))
