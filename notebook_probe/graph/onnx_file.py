"""A network as an ONNX file, in evaluation mode, as it would be used; needs onnx and onnxscript."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from notebook_probe.errors import MissingExtraError
from notebook_probe.graph.quiet import quiet
from notebook_probe.graph.undisturbed import undisturbed
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.step.containers import tensors_of

__all__ = ["check_onnx", "to_onnx"]

NEEDED = ("onnx", "onnxscript")
MOST_IN_ONE_FILE = 2**30
"""Bytes of weights above which they go to a second file; protobuf can store twice as many."""


def check_onnx() -> None:
    """Raise `MissingExtraError` where what torch needs for it is not installed."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"to_onnx: {' and '.join(missing)} not installed: pip install 'notebook-probe[onnx]'"
        )


def to_onnx(
    model: nn.Module,
    path: str | PathLike[str],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Path:
    """Write a model into a file, with its weights, without changing it.

    Raises
    ------
    MissingExtraError
    Exception
        Any error of torch.export or torch.onnx.
    """
    check_onnx()
    model, named, path = unwrap(model), dict(kwargs), Path(path)
    with undisturbed(model, tensors_of([args, named])), quiet():
        for part in model.modules():  # which is put back
            part.training = False
        program = torch.export.export(model, args, named, strict=False)
        n_bytes = sum(one.nbytes for one in (*model.parameters(), *model.buffers()))
        torch.onnx.export(program, f=path, verbose=False, external_data=n_bytes > MOST_IN_ONE_FILE)
    return path
