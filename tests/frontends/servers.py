"""Servers of notebooks on the loopback, each with a home of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import nbformat

from tests.browser.lab import ROOT, START_S

__all__ = ["Server", "jupyter", "marimo", "voila"]


class Server:
    """A server, from its first answer until it is closed, with the kernels that it has started."""

    def __init__(self, folder: Path, module: str, *arguments: str, page: str = "") -> None:
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/{page}"
        self._log = (folder / "server.log").open("w")
        self._server = subprocess.Popen(
            [sys.executable, "-m", module, *(one.format(port=port) for one in arguments)],
            cwd=folder,
            env=_environment(folder / "home"),
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._wait(f"http://127.0.0.1:{port}/static/favicon.ico")

    def _wait(self, url: str) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._server.poll() is None:
            with suppress(URLError, ConnectionError):
                with suppress(HTTPError):  # it has no such file, but it has answered
                    urlopen(url, timeout=20).close()
                return
            time.sleep(0.05)
        log = Path(self._log.name).read_text()
        self.close()
        raise RuntimeError(f"the server did not start:\n{log}")

    def close(self) -> None:
        """End it; a kernel that is busy with a cell hears no polite request."""
        with suppress(ProcessLookupError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait(timeout=20)
        self._log.close()


def marimo(folder: Path, cells: Sequence[str], mode: str = "edit", theme: str = "light") -> Server:
    """A marimo notebook that runs all its cells when it is opened, in mode ``edit`` or ``run``."""
    settings = folder / "home" / ".config" / "marimo" / "marimo.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[runtime]\nauto_instantiate = true\n[display]\ntheme = "{theme}"\n')
    written = [
        f"@app.cell\ndef _():\n{textwrap.indent(cell.strip(), '    ')}\n    return\n"
        for cell in cells
    ]
    notebook = "import marimo\n\napp = marimo.App()\n\n" + "\n".join(written)
    (folder / "notebook.py").write_text(notebook)
    options = ["--headless", "--no-token", "--host=127.0.0.1", "--port={port}"]
    if mode == "edit":
        options.append("--skip-update-check")
    return Server(folder, "marimo", "-y", mode, "notebook.py", *options)


def voila(folder: Path, cells: Sequence[str], *options: str) -> Server:
    """A Voilà page."""
    _write(folder, cells)
    common = ["--no-browser", "--Voila.ip=127.0.0.1", "--port={port}", "--show_tracebacks=True"]
    return Server(folder, "voila", "notebook.ipynb", *common, *options)


def jupyter(folder: Path, cells: Sequence[str], module: str) -> Server:
    """A notebook in one of Jupyter's own front ends: ``notebook`` or ``nbclassic``."""
    _write(folder, cells)
    common = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port={port}"]
    common += ["--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True"]
    common += ["--JupyterNotebookApp.expose_app_in_browser=True"]
    page = "nbclassic/notebooks" if module == "nbclassic" else "notebooks"
    return Server(folder, module, *common, page=f"{page}/notebook.ipynb")


def _write(folder: Path, cells: Sequence[str]) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    notebook.metadata.kernelspec = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, folder / "notebook.ipynb")


def _environment(home: Path) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    private = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONPATH": str(ROOT),
    }
    return {**os.environ, **private}


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
