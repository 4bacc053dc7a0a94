"""Making the graph of a model: exported, else called, else the tree of its modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from notebook_probe.graph.calling import called
from notebook_probe.graph.exporting import exported
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.listening import Heard, listening
from notebook_probe.graph.module_tree import tree
from notebook_probe.graph.undisturbed import undisturbed
from notebook_probe.model.map import ModelMap
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.probes.step.containers import tensors_of

__all__ = ["build", "build_tree", "in_words"]

WAYS = {"exported": exported, "called": called}
"""The better one first."""


def build(
    model: nn.Module, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
) -> Graph:
    """Return the graph of a model called with these arguments.

    It is exported by torch, which computes nothing; if that fails, the model is called once, on
    copies of its parameters and buffers; if that fails, too, the graph is the tree of modules.
    Nothing in the model changes, no random number is drawn, and no hook but torch's own is called.

    Parameters
    ----------
    model : nn.Module
        Model in its present modes; wrappers by compile, DDP or DataParallel are removed.
    args : tuple
    kwargs : mapping, optional

    Examples
    --------
    >>> import torch
    >>> graph = build(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), (torch.zeros(2, 4),))
    >>> [(node.op, node.module, node.shape) for node in graph.operators]
    [('linear', '0', (2, 3)), ('relu', '1', (2, 3))]
    """
    model, named = unwrap(model), dict(kwargs or {})
    heard, reasons = Heard(), list[str]()
    for how, way in WAYS.items():
        try:
            with (
                undisturbed(model, tensors_of([args, named])),
                listening(ModelMap(model).modules, heard),
            ):
                return replace(way(model, args, named, heard), why="; ".join(reasons))
        # Models and torch.export raise anything; the next way may do.
        except Exception as error:
            reasons.append(f"not {how}: {in_words(error)}")
    return tree(model, heard, "; ".join(reasons))


def build_tree(model: nn.Module, why: str) -> Graph:
    """Return the tree of modules, for a model with unknown arguments."""
    return tree(unwrap(model), Heard(), why)


def in_words(error: Exception) -> str:
    """Return the first line of an error."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}"[:300] if lines else type(error).__name__
