"""Requests to a live run: one table has the function of each kind."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Control, Request
from tests.models import mlp


def test_each_kind_of_request_has_its_function(tmp_path: Path) -> None:
    run = nbp.watch(mlp(), probes=None, store=tmp_path / "run.zarr")
    acts = run._parts.gate._boundary.acts  # type: ignore[attr-defined]
    assert acts.keys() == {*get_args(Request)} - {Control}, "the gate itself pauses and stops"
