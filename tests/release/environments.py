"""Empty environments into which the wheel is installed, with the versions that are asked for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.browser.lab import LabServer
from tests.release.conftest import ROOT

PYTHONS = "NOTEBOOK_PROBE_PYTHONS"
"""Variable with the interpreters to try, such as ``python3.11 python3.13``."""
FIRST_ON: dict[str, dict[str, str]] = {
    "3.12": {"google-crc32c": "1.6.0"},
    "3.13": {
        "google-crc32c": "1.7.0",
        "matplotlib": "3.9.2",
        "numpy": "2.1.0",
        "torch": "2.5.0",
    },
}
"""First versions that were built for a Python, where the lowest that is allowed is older."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pythons() -> list[str]:
    """The interpreters to try: those that the variable names, else the one that runs the tests."""
    return os.environ.get(PYTHONS, "").split() or [sys.executable]


def version_of(python: str) -> str:
    """The version of an interpreter, such as ``3.13``."""
    found = shutil.which(python)
    assert found is not None, f"{PYTHONS} names {python}, which is not installed"
    told = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.check_output([found, "-c", told], text=True).strip()


def floors(version: str) -> Iterator[str]:
    """Each requirement of the package and of its panel as the lowest version for a Python."""
    for requirement in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]):
        found = re.match(r"([\w-]+)>=([\d.]+)", requirement)
        assert found is not None, f"{requirement} has no floor"
        yield f"{found[1]}=={FIRST_ON.get(version, {}).get(found[1], found[2])}"


class Environment:
    """A new one in a folder; ``constraints`` bound what pip chooses."""

    def __init__(self, folder: Path, python: str, constraints: list[str]) -> None:
        self.folder = folder
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
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
