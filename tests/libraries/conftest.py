"""Collected only where the libraries are installed; nothing is ever downloaded."""

import os
import warnings
from importlib import import_module
from importlib.util import find_spec

import pytest

from tests.run.conftest import watch

__all__ = ["watch"]

# Asked for one library alone: another that is missing must fail the tests, not skip them.
collect_ignore_glob = [] if find_spec("transformers") else ["*.py"]

os.environ["HF_HUB_OFFLINE"] = "1"

if not collect_ignore_glob:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        for name in (
            "ignite.metrics",
            "torch_geometric.nn",
            "x_transformers",
        ):  # script functions when imported
            import_module(name)

pytest.register_assert_rewrite("tests.libraries.trained_twice")
