"""What a panel sends while a GPT of 78 modules trains: bytes of messages and buffers, by type."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch

import notebook_probe as nbp
from benchmarks.workloads import small_gpt
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.refresher import Refresher

WARM_S, MEASURED_S = 15.0, 30.0
SERIES = [("blocks.0.qkv", "grad_norm"), ("blocks.4.up", "grad_norm"), ("head", "weight_norm")]


def traffic() -> None:
    """Three chosen series beside the loss, the heat map, all of it looked at."""
    torch.set_num_threads(1)
    workload = small_gpt(width=64, n_blocks=9, batch=2, context=16)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "run.zarr"
        run = nbp.watch(workload.model, workload.optimizer, store=store, budget=None)
        view, ended = View(run), threading.Event()

        def train() -> None:
            while not ended.is_set():
                workload.step()
                run.log(loss=1.0 / (1 + run.controls.status_head().step))

        thread = threading.Thread(target=train)
        thread.start()
        time.sleep(WARM_S)
        view.choose()
        time.sleep(2.0)
        begun, before, first = time.monotonic(), view.sent.copy(), view.step
        time.sleep(MEASURED_S)
        seconds = time.monotonic() - begun
        sent = view.sent - before
        ended.set()
        thread.join()
        view.close()
        run.close()
    steps = view.step - first
    print(f"  {len(run.modules)} modules, {steps / seconds:.0f} steps/s")
    total = sum(size for (_, what), size in sent.items() if what == "bytes")
    print(f"  sent: {total / seconds / 1e3:.1f} kB/s")
    for (kind, what), size in sent.most_common():
        if what == "bytes":
            n = sent[kind, "messages"]
            print(f"    {kind:10} {size / seconds / 1e3:7.2f} kB/s in {n / seconds:.1f} messages/s")
    print(f"  refresh: {1e3 * median(view.costs_s):.1f} ms CPU (median)")


class View:
    """One view of the run that paints everything at once, refreshed at the panel's own pace."""

    def __init__(self, run: nbp.Run) -> None:
        self._session = PanelSession(run, run.controls)
        self.sent: Counter[tuple[str, str]] = Counter()
        self.step = 0
        self.costs_s: list[float] = []
        self._says("hello", view="x")
        widths = {"lines": 740, "heat": 740}
        self._says("viewport", view="x", widths=widths, pixel_ratio=1.0)
        self._refresher = Refresher(self, lambda: None)

    def refresh(self) -> None:
        begun_s = time.thread_time()
        self._session.publish(self._hears, "own subshell", self._session.head())
        self.costs_s.append(time.thread_time() - begun_s)

    def choose(self) -> None:
        """Draw some lines."""
        message = {**self._session.look().message(), "series": SERIES}
        self._says("selection", **{name: message[name] for name in message if name != "type"})

    def close(self) -> None:
        self._refresher.close()
        self._session.close()

    def _says(self, kind: str, **fields: Any) -> None:
        message = parse({**fields, "v": 1, "type": kind})
        assert message["type"] != "ping"
        self._session.receive(message)

    def _hears(self, message: Mapping[str, Any], buffers: list[memoryview]) -> None:
        kind = message["type"]
        size = len(json.dumps(message)) + sum(buffer.nbytes for buffer in buffers)
        self.sent[kind, "bytes"] += size
        self.sent[kind, "messages"] += 1
        self.step = max(self.step, message.get("step", 0))
        if "seq" in message:
            self._says("ack", view="x", painted={kind: message["seq"]})
