"""A real JupyterLab and the verbs with which a test uses a notebook in it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol
from urllib.error import URLError
from urllib.request import Request, urlopen

import nbformat
from playwright.sync_api import Locator, Page

ROOT = Path(__file__).parents[2]
START_S = 60.0
PATIENCE_S = 60.0  # a busy machine; nothing waits this long when it works

QUIET = [
    "--no-browser",
    "--allow-root",
    "--ServerApp.ip=127.0.0.1",
    "--ServerApp.port=0",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.news_url=",
    "--LabApp.extension_manager=readonly",
    "--KernelManager.shutdown_wait_time=0.5",  # a blocking cell does not hear a polite request
]

# window.notebookPanel() survives reloads: it looks the panel up each time.
FIND_PANEL = """
window.notebookPanel = () => {
  for (const widget of window.jupyterapp?.shell?.widgets("main") ?? [])
    if (widget.content?.widgets && widget.sessionContext) return widget;
  return null;
};
window.notebookCell = (i) => window.notebookPanel()?.content.widgets[i];
window.cellPrompt = (i) =>
  window.notebookCell(i)?.node.querySelector(".jp-InputArea-prompt")?.textContent ?? "";
"""
IS_SHOWN = "() => (window.notebookPanel?.()?.context.isReady && !!window.notebookCell(0)) || false"
IS_CONNECTED = """() => {
  const context = window.notebookPanel?.()?.sessionContext;
  return (context?.isReady && context.session?.kernel?.connectionStatus === "connected") || false;
}"""
IS_ALIVE = "() => ['idle', 'busy'].includes(notebookPanel().sessionContext.session.kernel.status)"


class LabServer:
    """One JupyterLab server on the loopback, with all its folders below ``folder``.

    Settings (`set`) are read when a page loads and hold for one test; the server keeps its own
    copy of each notebook, because JupyterLab saves by itself.
    """

    python = Path(sys.executable)  # whose JupyterLab

    def __init__(self, folder: Path) -> None:
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self._data, self._runtime = folder / "data", folder / "runtime"
        self._settings = folder / "settings"
        self._numbers = count()
        self.token = secrets.token_hex(16)
        self._log = (folder / "server.log").open("w")
        self._variables = self._environment(folder)
        command = [str(self.python), "-m", "jupyterlab", *QUIET]
        self._server = subprocess.Popen(
            [*command, f"--IdentityProvider.token={self.token}"],
            cwd=self.notebooks,
            env=self._variables,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self.url = self._wait_for_url()
        self.reset_settings()

    def _environment(self, folder: Path) -> dict[str, str]:
        private = {
            "JUPYTER_CONFIG_DIR": folder / "config",
            "JUPYTER_DATA_DIR": self._data,
            "JUPYTER_RUNTIME_DIR": self._runtime,
            "JUPYTERLAB_SETTINGS_DIR": self._settings,
            "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
            "IPYTHONDIR": folder / "ipython",
            "PYTHONPATH": ROOT,
            "JUPYTER_PREFER_ENV_PATH": "1",
        }
        return {**os.environ, **{name: str(value) for name, value in private.items()}}

    def _wait_for_url(self) -> str:
        """The server's address, once it answers there."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._server.poll() is None:
            for found in self._runtime.glob("jpserver-*.json"):
                try:
                    self.url = json.loads(found.read_text())["url"]
                    self.ask("GET", "api/status")
                except (ValueError, URLError):  # half written, or not listening yet
                    continue
                return self.url
            time.sleep(0.05)
        log = Path(self._log.name).read_text()
        self.close()
        raise RuntimeError(f"JupyterLab did not start:\n{log}")

    def ask(self, method: str, path: str) -> Any:
        """One request to the server's own interface."""
        headers = {"Authorization": f"token {self.token}"}
        with urlopen(Request(self.url + path, headers=headers, method=method), timeout=20) as reply:
            return json.loads(reply.read() or "null")

    def set(self, plugin: str, **settings: Any) -> None:
        """Write the user settings of ``"package:plugin"`` for the pages that load from now on."""
        package, name = plugin.split(":")
        path = self._settings / package / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))

    def reset_settings(self) -> None:
        shutil.rmtree(self._settings, ignore_errors=True)
        self.set("@jupyterlab/apputils-extension:notification", fetchNews="false")

    def offer_kernel(self, name: str, python: Path) -> None:
        """Let notebooks choose the ipykernel of another interpreter by this name."""
        spec = {
            "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": name,
            "language": "python",
        }
        folder = self._data / "kernels" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.json").write_text(json.dumps(spec))

    def add(self, source: Path | Sequence[str], kernel: str = "python3") -> Path:
        """Put a copy of a notebook, or one made of code cells, where the server finds it."""
        if isinstance(source, Path):
            notebook = nbformat.read(source, as_version=4)
        else:
            notebook = nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(code) for code in source]
            )
        notebook.metadata.kernelspec = {
            "name": kernel,
            "display_name": kernel,
            "language": "python",
        }
        path = self.notebooks / f"notebook-{next(self._numbers)}.ipynb"
        nbformat.write(notebook, path)
        return path

    def trust(self, path: Path) -> None:
        """Sign a notebook, as the front end does for who has run it."""
        command = [str(self.python), "-m", "jupyter", "trust", str(path)]
        subprocess.run(command, env=self._variables, check=True, capture_output=True)

    def end_kernels(self) -> None:
        for session in self.ask("GET", "api/sessions"):
            self.ask("DELETE", f"api/sessions/{session['id']}")

    def close(self) -> None:
        """Ask the server to end; it ends its kernels."""
        self._server.terminate()
        self._server.wait(timeout=20)
        self._log.close()


class Notebook:
    """A notebook open in JupyterLab; cells are counted from 0, all kinds of them."""

    def __init__(self, page: Page, server: LabServer, path: Path) -> None:
        self.page = page
        self.path = path
        page.add_init_script(FIND_PANEL)
        # A workspace of its own: no other notebook comes back with this one.
        page.goto(f"{server.url}lab/workspaces/{path.stem}/tree/{path.name}?token={server.token}")
        self.wait_shown()
        self.wait_connected()

    # ------------------------------------------------------------------------ the whole notebook

    def wait_until(self, condition: str, argument: Any = None) -> None:
        """Wait for a JavaScript predicate; ``notebookPanel()`` and ``notebookCell(i)`` exist."""
        self.page.wait_for_function(condition, arg=argument, timeout=PATIENCE_S * 1000)

    def wait_shown(self) -> None:
        self.wait_until(IS_SHOWN)

    def wait_connected(self) -> None:
        """Wait until the kernel can be spoken to; running a cell before opens a dialog."""
        self.wait_until(IS_CONNECTED)

    def interrupt(self) -> None:
        self.page.evaluate("() => notebookPanel().sessionContext.session.kernel.interrupt()")

    def restart(self) -> None:
        self.page.evaluate("() => notebookPanel().sessionContext.session.kernel.restart()")
        self.wait_connected()
        self.wait_until(IS_ALIVE)

    def save(self) -> None:
        self.page.evaluate("() => notebookPanel().context.save()")

    def reload(self, connected: bool = True) -> None:
        """Load the page again; a kernel busy with a cell stays unconnected until its end."""
        self.page.reload()
        self.wait_shown()
        if connected:
            self.wait_connected()

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=path)

    # ------------------------------------------------------------------------------------- cells

    def start(self, cell: int) -> None:
        """Run a cell without waiting for it."""
        self.page.evaluate(
            """(i) => {
              const panel = notebookPanel();
              panel.content.activeCellIndex = i;
              jupyterapp.shell.activateById(panel.id);
              const runs = (window.cellRuns ??= new Set());
              runs.add(i);
              jupyterapp.commands.execute("notebook:run-cell").finally(() => runs.delete(i));
            }""",
            cell,
        )

    def run(self, *cells: int) -> None:
        """Run cells, each to its end."""
        for cell in cells:
            self.start(cell)
            self.wait_finished(cell)

    def prompt(self, cell: int) -> str:
        """``[ ]:`` or ``[*]:`` or ``[3]:``; the page's "Idle" is no sign of an idle kernel."""
        return str(self.page.evaluate("(i) => cellPrompt(i)", cell))

    def wait_running(self, cell: int) -> None:
        self.wait_until(r"(i) => cellPrompt(i) === '[*]:'", cell)

    def wait_text(self, cell: int, text: str) -> None:
        """Wait until the cell printed `text`: only then the kernel surely runs it.

        Its prompt is ``[*]:`` from the request on; an idle kernel ignores an interrupt.
        """
        self.wait_until(
            "([i, text]) => notebookCell(i).model.outputs.toJSON().some("
            "  (output) => [output.text].flat().join('').includes(text))",
            [cell, text],
        )

    def wait_finished(self, cell: int) -> None:
        # A cell that is run again shows its old number for a moment.
        self.wait_until(
            r"(i) => !window.cellRuns?.has(i) && /^\[\d+\]:$/.test(cellPrompt(i))", cell
        )

    def is_running(self, cell: int) -> bool:
        return self.prompt(cell) == "[*]:"

    def outputs(self, cell: int) -> list[dict[str, Any]]:
        """The cell's outputs as the notebook file would hold them."""
        found: list[dict[str, Any]] = self.page.evaluate(
            "(i) => notebookCell(i).model.outputs.toJSON()", cell
        )
        return found

    def text(self, cell: int) -> str:
        """What the cell printed, showed as plain text, or raised."""
        return "".join(map(_text_of, self.outputs(cell)))

    def locate(self, cell: int) -> Locator:
        """The cell on the page; scroll to what is below before clicking it."""
        return self.page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{cell}']")


class OpenNotebook(Protocol):
    """The fixture `open_notebook`: takes the path of a notebook to copy, or code cells."""

    def __call__(self, source: Path | Sequence[str], kernel: str = "python3") -> Notebook: ...


def _text_of(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return "".join(output["text"])
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    return "".join(output["data"].get("text/plain", ""))
