"""A page's Python, run from top to bottom as a reader would, in a folder of its own."""

from __future__ import annotations

import re
from pathlib import Path

from tests.run.programs import Programs

__all__ = ["DOCS", "READERS_OWN", "blocks_of", "run_page"]

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)

READERS_OWN = """
from collections import OrderedDict

import torch
from torch import nn

import notebook_probe as nbp

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
model = nn.Sequential(OrderedDict(body=body, head=nn.Linear(8, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()
loader = [(torch.randn(32, 4), torch.randint(3, (32,))) for _ in range(20)]


def train(batches=loader):
    for x, y in batches:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
"""What a page that shows no training takes from its reader: a model, a loop, the usual import."""


def blocks_of(page: str) -> list[str]:
    """The blocks of a page of docs/ that are marked as Python."""
    blocks = BLOCK.findall((DOCS / page).read_text("utf-8"))
    assert blocks, f"{page} has no Python"
    return blocks


def run_page(
    page: str, programs: Programs, folder: Path, *, before: str = "", after: str = ""
) -> None:
    """Run a page's blocks in their order, without a warning or a word on stderr."""
    script = "\n".join([before, *blocks_of(page), after])
    ended = programs.run(script, folder=folder)
    assert ended == (0, ""), ended.stderr
