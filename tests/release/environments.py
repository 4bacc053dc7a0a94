"""Empty environments into which the wheel is installed, with the versions that are asked for."""

from __future__ import annotations

import re
import subprocess
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

from tests.browser.lab import LabServer
from tests.release.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def floors() -> Iterator[str]:
    """Each requirement of the package and of its panel as the lowest version that is allowed."""
    for requirement in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]):
        found = re.match(r"([\w-]+)>=([\d.]+)", requirement)
        assert found is not None, f"{requirement} has no floor"
        yield f"{found[1]}=={found[2]}"


class Environment:
    """A new one in a folder; ``constraints`` bound what pip chooses."""

    def __init__(self, folder: Path, constraints: list[str]) -> None:
        self.folder = folder
        venv.create(folder / "venv", with_pip=True)
        self.python = folder / "venv" / "bin" / "python"
        self._constraints = folder / "constraints.txt"
        self._constraints.write_text("\n".join(constraints))

    def install(self, requirement: str) -> None:
        """Install it with all that it needs."""
        pip = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        done = self.run(*pip, "--constraint", str(self._constraints), requirement)
        assert done.returncode == 0, done.stderr

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Its interpreter, outside the checkout and deaf to what surrounds it."""
        command = [str(self.python), "-I", *words]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)


class InstalledLab(LabServer):
    """Its JupyterLab, whose kernels know of this project what is installed there."""

    def __init__(self, folder: Path, environment: Environment) -> None:
        self.python = environment.python
        super().__init__(folder)

    def _environment(self, folder: Path) -> dict[str, str]:
        variables = super()._environment(folder)
        del variables["PYTHONPATH"]
        return variables
