"""Which kernels the tests run on: the installed one, and others from environments of their own.

``python tools/kernel_envs.py`` makes the others; ``pytest -m kernels`` uses them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.kernel_envs import VERSIONS, folder_of, python_of

INSTALLED = "installed"
KERNELS = [INSTALLED, *(pytest.param(v, marks=pytest.mark.kernels) for v in VERSIONS)]


def interpreter(kernel: str) -> Path:
    """The interpreter that has this ipykernel; a missing one fails and says how to get it."""
    if kernel == INSTALLED:
        return Path(sys.executable)
    if not python_of(kernel).exists():
        pytest.fail(f"no {folder_of(kernel).name}: run `python tools/kernel_envs.py` first")
    return python_of(kernel)
