"""What a click takes until its effect is painted, while a cell trains."""

from __future__ import annotations

import random
import time

import numpy as np
import numpy.typing as npt

from benchmarks.panel.in_lab import MLP, Clock, notebook_of
from tests.browser.explorer_page import Panel

N_CLICKS = 30
TRAIN = """
print("begun")
while True:
    workload.step()
"""
ECHO = """
from benchmarks.panel.echo import Echo
Echo()
"""
ANSWERED = "['queued', 'applied'].includes(root.querySelector('[data-role=ticket]').dataset.state)"
APPLIED = "root.querySelector('[data-role=ticket]').dataset.state === 'applied'"
N_ECHOES = "root.querySelector('button').dataset.n"
QUANTITIES = ("grad_norm", "weight_norm", "update_ratio", "output_mean")


def clicks() -> None:
    """Attach and detach in turns, each beside a bare echo, then quantities in the heat map."""
    with notebook_of([MLP, "run.explore()", ECHO, TRAIN]) as notebook:
        notebook.run(0, 1, 2)
        notebook.start(3)
        notebook.wait_text(3, "begun")
        panel = Panel(notebook, 1)
        panel.wait_step(300)
        panel.attach("0", "output_rms", "every(1)")
        panel.wait_attached()
        clock, echo = Clock(panel.root), Clock(notebook.locate(2).locator(".echo"))
        tickets, echoes = [], []
        for place in range(N_CLICKS):
            _rest()
            button = "[data-action=detach]" if place % 2 == 0 else "[data-action=attach]"
            tickets.append(clock.click(button, ANSWERED, APPLIED))
            _rest()
            echoes.append(echo.click("button", f"{N_ECHOES} === '{place + 1}'"))
        maps = []
        for place in range(N_CLICKS):
            _rest()
            quantity = QUANTITIES[place % len(QUANTITIES)]
            shown = f"root.querySelector('.nbp-heat').dataset.quantity === '{quantity}'"
            maps.append(clock.click(f".nbp-quantities [data-quantity='{quantity}']", shown))
        notebook.interrupt()
    answered, applied = np.array(tickets).T
    print(_line("click to a painted echo, the least there is", np.ravel(echoes)))
    print(_line("click to painted acknowledgement", answered))
    print(_line("click to painted 'attached' or 'detached'", applied))
    print(_line("click to another painted heat map", np.ravel(maps)))


def _rest() -> None:
    """At no fixed place between two refreshes."""
    time.sleep(random.uniform(0.4, 1.0))


def _line(what: str, times_ms: npt.NDArray[np.float64]) -> str:
    middle, late, most = np.quantile(times_ms, [0.5, 0.95, 1.0])
    return f"  {what}: median {middle:.0f} ms, p95 {late:.0f} ms, most {most:.0f} ms"
