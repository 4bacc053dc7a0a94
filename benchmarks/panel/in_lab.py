"""A real JupyterLab in a headless Chromium, and the time from a click to what is painted then."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Locator, sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium
from tests.browser.lab import LabServer, Notebook

__all__ = ["MLP", "Clock", "notebook_of"]

MLP = """
import torch
import notebook_probe as nbp
from benchmarks.workloads import mlp

torch.set_num_threads(1)
workload = mlp()
run = nbp.watch(workload.model, workload.optimizer, store="runs/run.zarr", budget=None)
"""
"""The first cell: an MLP with the default probes, whose step takes about 10 ms."""

# Resolves behind the frame in which the condition held: a message comes after the paint. What a
# frame's own callbacks change, as the drawing of a canvas does, is painted by that very frame.
CLOCK = """
const plainFrame = window.requestAnimationFrame;
let inFrame = false;
window.requestAnimationFrame = (run) => plainFrame((now) => {
  inFrame = true;
  try { run(now); } finally { queueMicrotask(() => (inFrame = false)); } // behind its observers
});
window.painted = (root, condition) => new Promise((done) => {
  const afterPaint = () => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now());
    port2.postMessage(0);
  };
  const settle = () => (inFrame ? afterPaint() : plainFrame(afterPaint));
  if (condition()) return settle();
  const observer = new MutationObserver(() => {
    if (!condition()) return;
    observer.disconnect();
    settle();
  });
  observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
});
window.clickTimes = async (root, button, conditions) => {
  const begun = performance.now();
  root.querySelector(button).click();
  const holds = conditions.map((one) => new Function("root", `return ${one}`));
  const times = await Promise.all(holds.map((one) => painted(root, () => one(root))));
  return times.map((time) => time - begun);
};
"""


@contextmanager
def notebook_of(cells: Sequence[str]) -> Iterator[Notebook]:
    """A notebook of these cells, open in a JupyterLab of its own."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        chromium = find_chromium(playwright)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        server = LabServer(Path(folder))
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.on("dialog", lambda dialog: dialog.accept())
            page.add_init_script(CLOCK)
            yield Notebook(page, server, server.add(cells))
            server.end_kernels()
        finally:
            server.close()
            browser.close()


class Clock:
    """Clicks in a widget and waits for what is painted then."""

    def __init__(self, root: Locator) -> None:
        self._root = root

    def click(self, button: str, *conditions: str) -> list[float]:
        """Milliseconds from a click on ``button`` until each JavaScript condition was painted."""
        found: list[float] = self._root.evaluate(
            "(root, [button, conditions]) => clickTimes(root, button, conditions)",
            [button, conditions],
        )
        return found
