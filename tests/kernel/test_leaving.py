"""A kernel that ends while a panel is open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from tests.kernel.front_end import PATIENCE_S, ROOT

OPEN = """
import gc, torch, notebook_probe as nbp
from torch import nn
from notebook_probe.explorer import Explorer

model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
run = nbp.watch(model, optimizer, store={store!r})
run.explore()
[panel] = [one for one in gc.get_objects() if isinstance(one, Explorer)]
panel._handle_custom_msg({{"v": 1, "type": "hello", "view": "x"}}, [])
sizes = {{"view": "x", "widths": {{"lines": 600, "heat": 600}}, "pixel_ratio": 1.0}}
panel._handle_custom_msg({{"v": 1, "type": "viewport", **sizes}}, [])
"""
TRAIN = """
for _ in range(300):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_nothing_is_sent_that_the_kernel_could_not_send_any_more(tmp_path: Path) -> None:
    """The run is closed then, which a panel shows in long messages."""
    log = tmp_path / "log"
    kernel = KernelManager()
    with log.open("w") as stream:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        kernel.start_kernel(stdout=stream, stderr=stream, env=environment, cwd=str(tmp_path))
        client = kernel.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=PATIENCE_S)
            for code in (OPEN.format(store=str(tmp_path / "a.zarr")), TRAIN):
                reply = client.execute_interactive(
                    code, timeout=PATIENCE_S, output_hook=lambda message: None
                )
                assert reply["content"]["status"] == "ok", reply["content"]
        finally:
            client.stop_channels()
            kernel.shutdown_kernel(now=False)
    assert "Traceback" not in log.read_text(encoding="utf-8")
