"""A click in a real JupyterLab is answered while the cell that was run still blocks."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.lab import LabServer, OpenNotebook
from tests.kernel.environments import KERNELS, interpreter

SETUP = '''
import threading, time
import anywidget, ipykernel
from notebook_probe.explorer.kernel import kernel_route
from notebook_probe.explorer.leaving import widget_lock

class Counter(anywidget.AnyWidget):
    """Counts clicks in the kernel; the last count comes back as text."""
    _esm = """
    export default { render({ model, el }) {
      for (const type of ["click", "stop"]) {
        const button = document.createElement("button");
        button.textContent = type;
        button.onclick = () => model.send({ type });
        el.append(button);
      }
      const count = document.createElement("output");
      const show = (message) => { count.textContent = message.count; };
      model.on("msg:custom", show);
      el.append(count);
      return () => model.off("msg:custom", show);
    } };
    """
    def __init__(self):
        super().__init__()
        self.count, self.stop = 0, threading.Event()
        self.on_msg(self.received)
        kernel_route().carry(self.comm)

    def received(self, _widget, content, _buffers):
        if content["type"] == "ping":
            kernel_route().answered(content["token"])
        if content["type"] == "stop":
            self.stop.set()
        if content["type"] == "click":
            self.count += 1
            with widget_lock:
                self.send({"count": self.count})

counter = Counter()
counter
'''
BLOCK = """
route = kernel_route()
print(route.verify(counter.comm, timeout_s=60), "on", ipykernel.__version__)
deadline = time.monotonic() + 150
while not counter.stop.wait(0.001) and time.monotonic() < deadline:
    route.pump()
print("stopped" if counter.stop.is_set() else "gave up")
"""
SETTINGS = "@jupyterlab/apputils-extension:kernels-settings"


@pytest.mark.parametrize("comms_over_subshells", ["perCommTarget", "disabled"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_click_is_answered_while_a_cell_blocks(
    lab: LabServer, open_notebook: OpenNotebook, kernel: str, comms_over_subshells: str
) -> None:
    lab.set(SETTINGS, commsOverSubshells=comms_over_subshells)
    lab.offer_kernel(kernel, interpreter(kernel))
    notebook = open_notebook([SETUP, BLOCK], kernel)
    notebook.run(0)
    panel = notebook.locate(0)
    notebook.start(1)
    notebook.wait_text(1, " on ")
    for count in (1, 2):
        panel.get_by_role("button", name="click").click()
        expect(panel.locator("output")).to_have_text(str(count))
    assert notebook.is_running(1)
    panel.get_by_role("button", name="stop").click()
    notebook.wait_finished(1)
    verified, ended = notebook.text(1).splitlines()
    route, _, version = verified.partition(" on ")
    assert route == ("pump" if version.startswith("6.") else "own subshell")
    assert kernel in ("installed", version[: len(kernel)])
    assert ended == "stopped"


def test_interrupt_restart_and_reload_do_what_they_say(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(
        ["import time; print('ran')", "print('asleep'); time.sleep(60)", "print(time)"]
    )
    notebook.run(0)
    notebook.start(1)
    notebook.wait_text(1, "asleep")
    notebook.interrupt()
    notebook.wait_finished(1)
    assert "KeyboardInterrupt" in notebook.text(1)
    notebook.save()
    notebook.reload()
    assert notebook.text(0) == "ran\n"
    notebook.run(2)
    assert "module 'time'" in notebook.text(2)
    notebook.restart()
    notebook.run(2)
    assert "NameError" in notebook.text(2)
