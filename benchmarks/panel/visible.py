"""Cost of a panel for a training: in slices in which it is visible, panned, hidden, or closed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.panel.in_lab import MLP, notebook_of
from benchmarks.panel.moving import MOVE
from tests.browser.explorer_page import Panel
from tests.browser.lab import Notebook

SLICE_S, SETTLE_S, ROUNDS = 5.0, 1.0, 6
FRAMES_S = 60
STATES = "visible", "panned", "hidden"
ALONE = """
import os, threading

os.sched_setaffinity(threading.get_native_id(), {%d})
"""
"""A cell after which the thread that trains has a core alone; others have begun before."""
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
    """Steps per second, and what of a step is work and what waiting, in slices that take turns.

    First on all cores, then with one for the training thread alone: on two cores a browser that
    draws without a graphics card takes most of one.
    """
    _shown_against_hidden("pass")
    with _one_core_less() as core:
        print(f"  the thread that trains on core {core} alone:")
        _shown_against_hidden(ALONE % core)
    _hidden_against_none()


@contextmanager
def _one_core_less() -> Iterator[int]:
    """Have all that is started leave out one core, and give its number."""
    before = os.sched_getaffinity(0)
    core, *others = sorted(before)
    os.sched_setaffinity(0, set(others) or before)
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)


def _shown_against_hidden(last: str) -> None:
    seconds = len(STATES) * ROUNDS * (SLICE_S + SETTLE_S) + 30
    with notebook_of([MLP, "run.explore()", last, TRAIN.format(seconds=seconds)]) as notebook:
        notebook.run(0, 1, 2)
        notebook.start(3)
        notebook.wait_text(3, "begun")
        panel = Panel(notebook, 1)
        panel.wait_step(300)
        slices = [_slice(notebook, state) for _ in range(ROUNDS) for state in STATES]
        notebook.wait_finished(3)
        notes = np.array(json.loads((notebook.path.parent / "notes.json").read_text()))
    measured = np.array([_of(notes, *one) for one in slices])
    by_state = {state: measured[k :: len(STATES)].T for k, state in enumerate(STATES)}
    rates = {state: of_state[0] for state, of_state in by_state.items()}
    print(f"  {np.median(rates['hidden']):.0f} steps/s while hidden")
    for state, (rate, own_ms, waits_ms, others) in by_state.items():
        low, middle, high = np.quantile(100 * (rate / rates["hidden"] - 1), [0.25, 0.5, 0.75])
        if state != "hidden":
            print(f"  {state} against hidden: {middle:+.1f} % steps/s ({low:+.1f} to {high:+.1f})")
        own, waits = np.median(own_ms), np.median(waits_ms)
        print(f"  {state}: a step takes {own:.1f} ms of CPU and waits for {waits:.1f} ms")
        used = 100 * np.median(others)
        print(f"  {state}: other threads of the kernel take {used:.1f} % of a core")


def _hidden_against_none() -> None:
    train = TRAIN.format(seconds=SLICE_S)
    rates, own_ms = [], []
    with notebook_of([MLP, "run.explore()", train, "run.explorer.close()", train]) as notebook:
        notebook.run(0)
        for _ in range(ROUNDS):
            notebook.run(1)
            Panel(notebook, 1).root.evaluate("(root) => { root.style.display = 'none'; }")
            for cells in ((2,), (3, 4)):
                time.sleep(SETTLE_S)
                notebook.run(*cells)
                notes = np.array(json.loads((notebook.path.parent / "notes.json").read_text()))
                rate, own, _, _ = _of(notes, notes[0, 0], np.inf)
                rates.append(rate)
                own_ms.append(own)
    hidden, none = slice(0, None, 2), slice(1, None, 2)
    change = 100 * (np.array(rates[hidden]) / np.array(rates[none]) - 1)
    low, middle, high = np.quantile(change, [0.25, 0.5, 0.75])
    print(f"  hidden against none: {middle:+.1f} % steps/s ({low:+.1f} to {high:+.1f})")
    beside, without = np.median(own_ms[hidden]), np.median(own_ms[none])
    print(f"  a step takes {beside:.2f} ms of CPU beside a hidden one, {without:.2f} without")


def _slice(notebook: Notebook, state: str) -> tuple[float, float]:
    """Begin and end of some seconds in which the panel is in sight, moved all the time, or not."""
    notebook.page.evaluate(
        """(display) => { document.querySelector(".nbp-panel").style.display = display; }""",
        "none" if state == "hidden" else "",
    )
    time.sleep(SETTLE_S)
    begun = time.monotonic()
    if state == "panned":
        notebook.page.evaluate(MOVE, ["pan", int(SLICE_S * FRAMES_S)])
    else:
        time.sleep(SLICE_S)
    return begun, time.monotonic()


def _of(notes: np.ndarray, begun: float, ended: float) -> tuple[float, float, float, float]:
    """Steps per second, ms of CPU and of waiting per step, share of a core of other threads."""
    inside = notes[(notes[:, 0] >= begun) & (notes[:, 0] < ended)]
    wall, own, all_threads = inside[-1] - inside[0]
    n = len(inside) - 1
    return n / wall, 1e3 * own / n, 1e3 * (wall - own) / n, (all_threads - own) / wall
