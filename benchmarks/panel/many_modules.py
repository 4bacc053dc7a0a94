"""How long a panel of 10,000 modules takes until it is shown."""

from __future__ import annotations

import time

from benchmarks.panel.in_lab import notebook_of

N_TIMES = 5
WATCH = """
import torch
from torch import nn
import notebook_probe as nbp

torch.set_num_threads(1)
blocks = (nn.Sequential(*(nn.Linear(4, 4) for _ in range(9))) for _ in range(1000))
model = nn.Sequential(*blocks)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
run = nbp.watch(model, optimizer, store="runs/wide.zarr", probes=None, budget=None)
run.attach("*", "grad_norm")
for _ in range(3):
    model(torch.randn(2, 4)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
AGED = "for (const one of document.querySelectorAll('.nbp-panel')) one.dataset.old = '1';"
SHOWN = """() => {
  const root = document.querySelector(".nbp-panel:not([data-old])");
  const rows = Number(root?.querySelector(".nbp-heat")?.dataset.rows ?? 0);
  return rows > 9000 && root.querySelectorAll(".nbp-row").length > 5;
}"""


def many_modules() -> None:
    """From running the cell to the painted heat map and tree; the first time with its imports."""
    with notebook_of([WATCH, "run.explorer.close()\nrun.explore()"]) as notebook:
        notebook.run(0)
        for _ in range(N_TIMES):
            notebook.page.evaluate(AGED)
            begun = time.perf_counter()
            notebook.start(1)
            notebook.page.wait_for_function(SHOWN, polling=10)
            shown_s = time.perf_counter() - begun
            notebook.wait_finished(1)
            ended_s = time.perf_counter() - begun
            print(f"  shown after {shown_s:.2f} s, the cell ended after {ended_s:.2f} s")
