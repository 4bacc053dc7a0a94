"""Processes that begin with torch imported: forks of one server, which imports it once for all."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext, SpawnContext

__all__ = ["process_context"]

PRELOADED = ["torch", "torch._dynamo", "torch.distributed", "notebook_probe.run.run"]


def process_context() -> ForkServerContext | SpawnContext:
    """What starts processes for tests; where there is no fork, they import torch themselves."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context
