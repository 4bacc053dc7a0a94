"""Packages from wheels that lie beside the checkout: nothing is fetched, torch is left alone.

``python -m tools.gpu.wheels 3.12`` fetches them beforehand, on a machine with a network, for one
with that Python and torch.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

__all__ = ["NEEDED", "download", "install", "missing"]

NEEDED = (
    *("torch", "numpy", "xarray", "zarr", "numcodecs", "google_crc32c", "threadpoolctl"),
    *("pytest", "hypothesis", "pytest_timeout", "xdist"),
)
"""What is imported by the parts of a run."""

PACKAGES = (
    *("xarray>=2024.10", "zarr>=3.0.8", "numcodecs>=0.14", "google-crc32c>=1.5"),
    *("threadpoolctl>=3.5", "pytest>=8.2", "hypothesis>=6.100", "pytest-timeout>=2.3"),
    *("pytest-xdist>=3.6", "packaging"),
)
"""What brings it, but torch, which the machine has."""


def missing() -> list[str]:
    """Return the needed packages that cannot be imported."""
    return [name for name in NEEDED if find_spec(name) is None]


def install(folders: list[Path], target: Path) -> bool:
    """Install every wheel of the first folder that has some into ``target``; whether there was one.

    Without dependencies: pip would look for them elsewhere, and a torch that is here stays.
    """
    for folder in folders:
        wheels = sorted(folder.glob("*.whl"))
        if wheels:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
            command += ["--no-compile", "--upgrade", "--target", str(target), *map(str, wheels)]
            subprocess.run(command, check=True)
            invalidate_caches()  # the folder was not there before
            return True
    return False


def download(python: str, target: Path) -> None:
    """Fetch the wheels for Linux of what a bare machine with torch lacks, with what they need.

    Parameters
    ----------
    python : str
        Version of the machine's Python, such as ``"3.12"``.
    target : Path
        Folder to carry there.
    """
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in (17, 24, 27, 28)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:"]
    command += [f"--python-version={python}", "--implementation=cp", *platforms]
    subprocess.run([*command, f"--dest={target}", *PACKAGES], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=download.__doc__)
    parser.add_argument("python", help="version of the machine's Python: 3.12")
    parser.add_argument("--into", type=Path, default=Path("wheels"))
    asked = parser.parse_args()
    download(asked.python, asked.into)
