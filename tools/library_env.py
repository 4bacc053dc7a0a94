"""Make the environment that holds other people's trainers and models, for `pytest -m libraries`.

Apart from `.venv`, because they are many and large and nothing else needs them. Run again, it
installs only what the pins have changed.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv-libraries"
PYTHON = FOLDER / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
PINS = ("constraints.txt", "constraints-libraries.txt", "pyproject.toml")


def make() -> None:
    """Create the environment, or renew it where the pins are newer."""
    complete = FOLDER / "complete"  # written last: an interrupted installation starts again
    if not complete.exists():
        print(f"making {FOLDER.name}", flush=True)
        venv.create(FOLDER, clear=True, with_pip=True)
    elif all(complete.stat().st_mtime >= (ROOT / pins).stat().st_mtime for pins in PINS):
        return
    _pip("--upgrade", "pip>=25.1")  # the first that reads dependency groups
    _pip("torch")  # alone and first: the libraries take the build that is there
    _pip("--editable", ".", "--group", "test", "--group", "libraries")
    complete.touch()


def _pip(*arguments: str) -> None:
    install = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    pins = [f"--constraint={name}" for name in PINS if name.endswith(".txt")]
    subprocess.run([*install, *pins, *arguments], check=True, cwd=ROOT)


if __name__ == "__main__":
    make()
