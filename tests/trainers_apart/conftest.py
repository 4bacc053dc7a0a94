"""Collected only where the trainer of a file is installed; see pyproject.toml."""

import os
import warnings
from importlib import import_module
from importlib.util import find_spec

from tests.run.conftest import watch

__all__ = ["watch"]

os.environ["HF_HUB_OFFLINE"] = "1"

collect_ignore_glob = [
    f"test_{name}*.py" for name in ("axolotl", "fastai") if find_spec(name) is None
]

if find_spec("fastai"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch and pandas, to fastai
        import_module("fastai.callback.schedule")  # which gives a Learner lr_find
