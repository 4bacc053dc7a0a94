"""What a click on the panel of a large model takes until its request is queued, while training.

Beside it, what a click would take that looked at every probe first; and the CPU share of the
refreshing thread with a view that is looked at, and with none.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer.panel import Panel
from notebook_probe.explorer.refresher import n_cores, pause_s
from notebook_probe.quantities import quantities

N_PROBES, N_CLICKS, REST_S, SHARE_S = 9, 200, 0.01, 12.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Size of the model."""
    parser.add_argument("--modules", type=int, default=2400)


def run(chosen: argparse.Namespace) -> None:
    """Print the times of clicks, and what the refreshing thread takes."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(chosen.modules)))
        watched = nbp.watch(model, store=Path(folder) / "run.zarr", probes=None)
        _attach(watched)
        print(f"a click while training, {chosen.modules} modules x {N_PROBES} probes")
        panel = Panel(watched, watched.controls)
        with _training(model):
            _clicks(panel, watched)
            for text, visible in (("a view is looked at", True), ("nobody looks", False)):
                print(f"  refreshing thread, {text}: {_share_percent(panel, visible):.2f} %")
        watched.close()


def _attach(watched: nbp.Run) -> None:
    scalars = [q for q in quantities.values() if q.needs == ("output",) and q.axis is None]
    for quantity in scalars[:N_PROBES]:
        watched.attach("*", quantity, "every(50)")


@contextmanager
def _training(model: nn.Module) -> Iterator[None]:
    optimizer, batch = torch.optim.SGD(model.parameters(), lr=1e-6), torch.randn(4, 4)
    ended, begun = threading.Event(), threading.Event()

    def train() -> None:
        while not ended.is_set():
            model(batch).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            begun.set()

    thread = threading.Thread(target=train)
    thread.start()
    begun.wait()
    yield
    ended.set()
    thread.join()


def _clicks(panel: Panel, watched: nbp.Run) -> None:
    """Time from the handler's begin to the queue, and the CPU time of a click and of a status."""
    _hears(panel, {"type": "hello", "view": "x"})
    panel._session.publish(lambda *_: None, "", watched.controls.status_head())
    queued_s: list[float] = []
    put = watched._parts.gate._waiting.put

    class Waiting:
        """The queue of the gate, which notes when something came."""

        empty, get, get_nowait = (
            getattr(watched._parts.gate._waiting, name) for name in ("empty", "get", "get_nowait")
        )

        def put(self, ticket: object) -> None:
            queued_s.append(time.perf_counter())
            put(ticket)  # type: ignore[arg-type]

    watched._parts.gate._waiting = Waiting()  # type: ignore[assignment]
    taken, cpu = [], []
    click = {"type": "detach", "id": "1", "where": ["0"], "quantity": "none"}
    for _ in range(N_CLICKS):
        begun = time.perf_counter()
        cpu.append(_cpu_s(lambda: _hears(panel, click)))
        taken.append(1e3 * (queued_s[-1] - begun))
        time.sleep(REST_S)
    head_s = np.median([_cpu_s(watched.controls.status_head) for _ in range(20)])
    status_s = np.median([_cpu_s(watched.status) for _ in range(3)])
    middle, late, most = np.quantile(taken, [0.5, 0.95, 1.0])
    print(f"  to the queue: median {middle:.3f} ms, p95 {late:.3f} ms, most {most:.3f} ms")
    print(f"  CPU: a click {1e6 * np.median(cpu):.0f} µs, a head {1e6 * head_s:.0f} µs")
    print(f"  a whole status {1e3 * status_s:.0f} ms: {status_s / np.median(cpu):,.0f} clicks")


def _hears(panel: Panel, message: Mapping[str, object]) -> None:
    panel.receive({"v": 1, **message})


def _share_percent(panel: Panel, visible: bool) -> float:
    """CPU time of a thread that refreshes at the panel's own pace, per cent of a core."""
    _hears(panel, {"type": "visible", "view": "x", "visible": visible})
    session, cores = panel._session, n_cores()
    session.publish(lambda *_: None, "", session.head())
    begun, cpu_s = time.monotonic(), 0.0
    while time.monotonic() - begun < SHARE_S:
        cost_s = _cpu_s(lambda: session.publish(lambda *_: None, "", session.head()))
        cpu_s += cost_s
        time.sleep(pause_s(cost_s, cores))
    return 100 * cpu_s / (time.monotonic() - begun)


def _cpu_s(act: Callable[[], object]) -> float:
    begun = time.thread_time()
    act()
    return time.thread_time() - begun
