"""Make the environment that holds an S3 server for tests, for `pytest -m s3`.

Apart from `.venv`, because it wants an older python-dateutil than the one there. Run again, it
makes only what is missing.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(__file__).parents[1] / ".venv-s3"
PYTHON = FOLDER / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
NEEDS = ("moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5")


def make() -> None:
    """Create the environment unless it is complete."""
    complete = FOLDER / "complete"  # written last: an interrupted installation starts again
    if complete.exists():
        return
    print(f"making {FOLDER.name}", flush=True)
    venv.create(FOLDER, clear=True, with_pip=True)
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *NEEDS], check=True)
    complete.touch()


if __name__ == "__main__":
    make()
