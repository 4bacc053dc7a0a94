"""Make the environment of a dependency group: ``python tools/group_env.py libraries``.

Apart from `.venv`, because they are many and large and nothing else needs them. Run again, it
installs only what the pins have changed.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def make(group: str) -> None:
    """Create ``.venv-<group>`` with the tests' own packages, or renew it where pins are newer."""
    folder = ROOT / f".venv-{group}"
    own = f"constraints-{group}.txt"
    pins = ["constraints.txt", *([own] if (ROOT / own).exists() else [])]
    complete = folder / "complete"  # written last: an interrupted installation starts again
    if not complete.exists():
        print(f"making {folder.name}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
    elif all(
        complete.stat().st_mtime >= (ROOT / name).stat().st_mtime
        for name in (*pins, "pyproject.toml")
    ):
        return

    def install(*arguments: str) -> None:
        python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        pinned = [f"--constraint={name}" for name in pins]
        subprocess.run([*command, *pinned, *arguments], check=True, cwd=ROOT)

    install("--upgrade", "pip>=25.1")  # the first that reads dependency groups
    install("torch")  # alone and first: the others take the build that is there
    install("--editable", ".", "--group", "test", "--group", group)
    complete.touch()


if __name__ == "__main__":
    make(sys.argv[1])
