"""The panel: clicks, traffic, what it takes of a training, wide models and long runs."""

from __future__ import annotations

import argparse

from benchmarks.panel.clicks import clicks
from benchmarks.panel.many_modules import many_modules
from benchmarks.panel.moving import moving
from benchmarks.panel.traffic import traffic
from benchmarks.panel.tree import tree
from benchmarks.panel.visible import visible
from benchmarks.panel.zoom import zoom

PARTS = {
    "clicks": clicks,
    "traffic": traffic,
    "visible": visible,
    "many_modules": many_modules,
    "zoom": zoom,
    "tree": tree,
    "moving": moving,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which parts to measure."""
    parser.add_argument("--parts", default=",".join(PARTS), help="some of " + ", ".join(PARTS))


def run(chosen: argparse.Namespace) -> None:
    """Print what each part takes."""
    for name in chosen.parts.split(","):
        print(f"{name}: {(PARTS[name].__doc__ or '').splitlines()[0]}")
        PARTS[name]()
