"""Make the environment of a dependency group: ``python -m tools.group_env libraries``.

What ``.venv-<group>`` holds is declared in pyproject.toml alone. A group that names the package
gets it editable, with all that it requires. A group named after a kernel gets what the panel
requires, without torch. Run again, it installs only if something else is declared now.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT, GROUPS = DECLARED["project"], DECLARED["dependency-groups"]
PANEL = f"{PROJECT['name']}[lab]"
KERNELS = tuple(group for group in GROUPS if group.startswith("ipykernel-"))
# A kernel reads records without torch, and front ends are not installed beside it.
NOT_IN_A_KERNEL = {"torch", "jupyterlab"}


def name_of(requirement: str) -> str:
    """Return the name of what a requirement such as ``moto[s3]>=5`` asks for."""
    matched = re.match(r"[\w.-]+", requirement)
    assert matched is not None, requirement
    return re.sub(r"[-_.]+", "-", matched[0]).lower()


def entries(group: str) -> Iterator[str]:
    """Yield the requirements of a group and of the groups that it includes."""
    for entry in GROUPS[group]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from entries(entry["include-group"])


def expanded(requirement: str) -> Iterator[str]:
    """Yield a requirement; in place of the package itself, what it and its extras require."""
    if name_of(requirement) != PROJECT["name"]:
        yield requirement
        return
    extras = re.findall(r"[\w-]+", requirement.removeprefix(PROJECT["name"]))
    yield from PROJECT["dependencies"]
    for extra in extras:
        for entry in PROJECT["optional-dependencies"][extra]:
            yield from expanded(entry)


def requirements(group: str) -> list[str]:
    """Return all that the environment of a group requires, other than the package itself."""
    found = dict.fromkeys(each for entry in entries(group) for each in expanded(entry))
    if group in KERNELS:
        excluded = {*map(name_of, found), *NOT_IN_A_KERNEL}
        found |= dict.fromkeys(each for each in expanded(PANEL) if name_of(each) not in excluded)
    return [*found]


def folder_of(group: str) -> Path:
    """Return the folder of the environment."""
    return ROOT / f".venv-{group}"


def python_of(group: str) -> Path:
    """Return the interpreter of the environment."""
    return folder_of(group) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def pins_of(group: str) -> list[str]:
    """Return the constraints files of a group; one that pins versions of its own has none."""
    if any("==" in entry for entry in entries(group)):
        return []
    names = "constraints.txt", f"constraints-{group}.txt"
    return [name for name in names if (ROOT / name).exists()]


def declaration(group: str) -> str:
    """Return what decides the content of the environment, as one text."""
    pins = ((ROOT / name).read_text("utf-8") for name in pins_of(group))
    return "\n".join([sys.version, *requirements(group), *pins])


def make(group: str) -> None:
    """Create ``.venv-<group>``, or renew it if something else is declared now."""
    stamp, wanted = folder_of(group) / "stamp", declaration(group)
    held = stamp.read_text("utf-8") if stamp.exists() else ""
    if held != wanted:
        print(f"making {folder_of(group).name}", flush=True)
        # Resolved: CI keeps the folder elsewhere, and installed programs name their interpreter.
        same = held.startswith(sys.version)
        venv.create(folder_of(group).resolve(), clear=not same, with_pip=True)
        stamp.unlink(missing_ok=True)
        install(group)
    stamp.write_text(wanted, "utf-8")  # last: an interrupted installation starts again


def install(group: str) -> None:
    """Install all that the environment requires."""
    command = [str(python_of(group)), "-m", "pip", "--disable-pip-version-check", "install"]
    command += ["--quiet", *(f"--constraint={name}" for name in pins_of(group))]

    def pip(*arguments: str) -> None:
        subprocess.run([*command, *arguments], check=True, cwd=ROOT)

    wanted = requirements(group)
    # Alone and first: the others take the build of torch that is installed.
    pip("--upgrade", "pip>=25.1", *(each for each in wanted if name_of(each) == "torch"))
    own = any(name_of(each) == PROJECT["name"] for each in entries(group))
    pip(*wanted, *(["--editable", "."] if own else []))


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        make(wanted)
