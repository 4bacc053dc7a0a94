"""The graph where nothing can be called: the modules that have none in them, unlinked."""

from __future__ import annotations

from torch import nn

from notebook_probe.graph.draft import UNKNOWN, Draft
from notebook_probe.graph.graph import Graph
from notebook_probe.graph.listening import Heard
from notebook_probe.graph.parsing import MOST_NODES
from notebook_probe.model.map import ModelMap

__all__ = ["tree"]


def tree(model: nn.Module, heard: Heard, why: str) -> Graph:
    """Every module as a node that has no other in it, with its shape where one was heard."""
    model_map = ModelMap(model)
    draft = Draft(model_map)
    innermost = [
        (path, module) for path, module in model_map.modules.items() if not any(module.children())
    ]
    for path, module in innermost[:MOST_NODES]:
        name = type(module).__name__
        draft.add("module", path or name, name, path, heard.given.get(path, UNKNOWN))
    if len(innermost) > MOST_NODES:
        why += f"; {len(innermost) - MOST_NODES} modules are left out"
    return draft.finish("tree", {}, why)
