"""Which kernels the tests run on: the installed one, and others from environments of their own.

``make test-kernels`` makes the others; ``pytest -m kernels`` uses them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.group_env import KERNELS as OTHERS
from tools.group_env import folder_of, python_of

PREFIX, COLAB = "ipykernel-", "colab"
VERSIONS = [group.removeprefix(PREFIX) for group in OTHERS if group != f"{PREFIX}{COLAB}"]
INSTALLED = "installed"
KERNELS = [INSTALLED, *(pytest.param(v, marks=pytest.mark.kernels) for v in VERSIONS)]


def interpreter(kernel: str) -> Path:
    """The interpreter that has this ipykernel; a missing one fails and says how to get it."""
    if kernel == INSTALLED:
        return Path(sys.executable)
    group = f"{PREFIX}{kernel}"
    if not python_of(group).exists():
        pytest.fail(f"no {folder_of(group).name}: run `python -m tools.group_env {group}` first")
    return python_of(group)
