"""The least that a click can take: a widget that does nothing but send back what it is sent."""

from __future__ import annotations

from typing import Any

import anywidget

from notebook_probe.explorer.kernel import kernel_route

__all__ = ["Echo"]


class Echo(anywidget.AnyWidget):
    """A button, answered in the same thread as a panel's clicks are; ``data-n`` counts answers."""

    _esm = """
    export default { render({ model, el }) {
      const button = document.createElement("button");
      button.textContent = "echo";
      button.dataset.n = 0;
      el.className = "echo";
      el.append(button);
      button.addEventListener("click", () => model.send({}));
      model.on("msg:custom", () => (button.dataset.n = Number(button.dataset.n) + 1));
    } };
    """

    def __init__(self) -> None:
        super().__init__()
        kernel_route().carry(self.comm)
        self.on_msg(self._send_back)

    def _send_back(self, _: Any, content: Any, buffers: Any) -> None:
        self.send(content)
