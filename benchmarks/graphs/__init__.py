"""The graphs of models of torchvision, timm and transformers: how each could be made.

With random weights and inputs of zeros, in training. `--save` writes
docs/reference/graph_models.md. It runs where the dependency group `graphs` is installed.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.graphs.looked_at import LookedAt, looked_at

__all__ = ["add_arguments", "run"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "graph_models.md"
HEAD = """# Models and their graphs

<!-- written by `python -m benchmarks graphs --save` -->

How [the graph](../how_to/graph.md) of each of {n} models was built: {how}. {failed}, and {changed}.

Each model is in training mode, with random weights and small inputs of zeros; those of transformers
have two layers. Parameters, buffers, gradients, modes, hooks, attributes and random generators were
compared bit for bit before and after. Seconds are the CPU time of one build, on {machine}.

| library | model | built | operators | modules | s | why not exported |
|---|---|---|---|---|---|---|
"""
LONGEST = 90


@dataclass(frozen=True)
class Row:
    """A model and what came of it."""

    library: str
    name: str
    found: LookedAt

    def __str__(self) -> str:
        graph = self.found.graph
        n_modules = len({node.module for node in graph.operators})
        why = graph.why.removeprefix("not exported: ").replace("|", "\\|")
        why = why if len(why) <= LONGEST else why[:LONGEST] + "…"
        made = graph.how, len(graph.operators), n_modules, f"{self.found.seconds:.1f}", why
        return f"| {' | '.join(map(str, (self.library, self.name, *made)))} |"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--save", action="store_true", help="write docs/reference/graph_models.md")
    parser.add_argument("--only", nargs="*", default=[], help="names of models; all by default")


def run(arguments: argparse.Namespace) -> None:
    """Print a line for each model; save the page where asked."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from benchmarks.graphs.models import MODELS

    rows = []
    for (library, name), make in MODELS.items():
        if not arguments.only or name in arguments.only:
            rows.append(Row(library, name, looked_at(make)))
            print(rows[-1], *rows[-1].found.changed, flush=True)
    if arguments.save:
        PAGE.write_text(_head(rows) + "\n".join(map(str, rows)) + "\n", "utf-8")


def _head(rows: list[Row]) -> str:
    hows = Counter(row.found.graph.how for row in rows)
    trees = [row.name for row in rows if row.found.graph.how == "tree"]
    changed = [row.name for row in rows if row.found.changed]
    return HEAD.format(
        n=len(rows),
        how=", ".join(f"{n} {how}" for how, n in hows.most_common()),
        failed=f"{', '.join(trees)} came to the tree alone" if trees else "No build failed",
        changed=f"{', '.join(changed)} changed by it" if changed else "none changed by it",
        machine=f"{os.cpu_count()} cores ({platform.machine()}), torch {version('torch')}",
    )
