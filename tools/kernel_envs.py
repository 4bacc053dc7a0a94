"""Make one environment per older kernel that the panel supports, for `pytest -m kernels`.

They hold what the panel needs inside a kernel, without torch. Run again, it makes only what is
missing.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("6.31", "7.3")
COLAB = "colab"
PINS = {version: (f"ipykernel=={version}.*",) for version in VERSIONS} | {
    # of github.com/googlecolab/backend-info, August 2026
    COLAB: ("ipykernel==6.17.1", "ipywidgets==7.7.1", "ipython==7.34.0", "jupyter_client==7.4.9"),
}
NEEDS = ("anywidget", "ipywidgets", "matplotlib", "numpy", "xarray", "zarr")


def folder_of(version: str) -> Path:
    """Where the environment with this kernel is, or will be."""
    return ROOT / f".venv-ipykernel-{version}"


def python_of(version: str) -> Path:
    """The interpreter of that environment."""
    return folder_of(version) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def make(version: str) -> None:
    """Create the environment unless it is complete."""
    folder = folder_of(version)
    complete = folder / "complete"  # written last: an interrupted installation starts again
    if complete.exists():
        return
    print(f"making {folder.name}", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    install = [
        str(python_of(version)),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run([*install, *PINS[version], *NEEDS], check=True)
    complete.touch()


if __name__ == "__main__":
    for wanted in PINS:
        make(wanted)
