"""What a panel takes of a training: slices in which it is looked at, and out of sight."""

from __future__ import annotations

import json
import time

import numpy as np

from benchmarks.panel.in_lab import MLP, notebook_of
from tests.browser.explorer_page import Panel
from tests.browser.lab import Notebook

SLICE_S, SETTLE_S, ROUNDS = 5.0, 1.0, 6
TRAIN = """
import json, time
from pathlib import Path

notes, ended = [], time.monotonic() + {seconds}
print("begun")
while time.monotonic() < ended:
    workload.step()
    notes.append((time.monotonic(), time.thread_time(), time.process_time()))
Path("notes.json").write_text(json.dumps(notes))
"""


def visible() -> None:
    """Steps per second, and CPU of the kernel's other threads, in slices that take turns."""
    seconds = 2 * ROUNDS * (SLICE_S + SETTLE_S) + 30
    with notebook_of([MLP, "run.explore()", TRAIN.format(seconds=seconds)]) as notebook:
        notebook.run(0, 1)
        notebook.start(2)
        notebook.wait_text(2, "begun")
        panel = Panel(notebook, 1)
        panel.wait_step(300)
        slices = [_slice(notebook, k % 2 == 0) for k in range(2 * ROUNDS)]
        notebook.wait_finished(2)
        notes = np.array(json.loads((notebook.path.parent / "notes.json").read_text()))
    rates, others = np.array([_of(notes, *one) for one in slices]).T
    shown, hidden = rates[0::2], rates[1::2]
    change = 100 * (shown / hidden - 1)
    low, middle, high = np.quantile(change, [0.25, 0.5, 0.75])
    print(f"  visible against hidden: {middle:+.1f} % steps/s ({low:+.1f} to {high:+.1f})")
    print(f"  {np.median(hidden):.0f} steps/s while hidden")
    for text, used in (("visible", others[0::2]), ("hidden", others[1::2])):
        print(f"  {text}: other threads of the kernel take {100 * np.median(used):.1f} % of a core")


def _slice(notebook: Notebook, shown: bool) -> tuple[float, float]:
    """Begin and end of some seconds in which the panel is in sight, or not."""
    notebook.page.evaluate(
        """(display) => { document.querySelector(".nbp-panel").style.display = display; }""",
        "" if shown else "none",
    )
    time.sleep(SETTLE_S)
    begun = time.monotonic()
    time.sleep(SLICE_S)
    return begun, time.monotonic()


def _of(notes: np.ndarray, begun: float, ended: float) -> tuple[float, float]:
    """Steps per second, and the share of a core that other threads took."""
    inside = notes[(notes[:, 0] >= begun) & (notes[:, 0] < ended)]
    wall, own, all_threads = inside[-1] - inside[0]
    return (len(inside) - 1) / wall, (all_threads - own) / wall
