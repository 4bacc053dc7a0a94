"""Code and packages of a run: stored with the config, in the record's root."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from itertools import filterfalse
from pathlib import Path
from typing import Any

from notebook_probe.record.format.notes import read_notes
from notebook_probe.record.write.writer import RecordWriter

__all__ = ["git_state", "keep_provenance", "package_versions"]

# A repository on a slow network drive must not delay a training.
TIMEOUT_S = 2.0
GIT = ("git", "status", "--porcelain=v2", "--branch", "--untracked-files=no")


def keep_provenance(writer: RecordWriter) -> None:
    """Keep what makes the run in the root; an event has what made the record before, if other.

    Newly loaded packages never remove known ones.
    """
    now = {"git": git_state(), "packages": package_versions()}
    before = {name: read_notes(writer.attrs, name) for name in now if name in writer.attrs}
    other = [
        name
        for name, known in before.items()
        if any(now[name].get(key) != value for key, value in known.items())
    ]
    if other:
        text = f"continued with other {' and '.join(other)} than before"
        writer.event(writer.first_step, "code", text, json.dumps(before))
    writer.annotate(**{name: json.dumps(own) for name, own in now.items()})


def git_state(folder: Path | None = None) -> dict[str, Any]:
    """Commit, branch, and whether tracked files differ; empty outside of a repository.

    Parameters
    ----------
    folder : Path, optional
        Folder to inspect; by default that of the process.
    """
    try:
        done = subprocess.run(
            GIT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=True,
            cwd=folder,
            # Without optional locks: git status would refresh the index, and block the user's own
            # git.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},  # it only looks
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return read_git_status(done.stdout)


def read_git_status(text: str) -> dict[str, Any]:
    r"""Return the state from ``git status --porcelain=v2 --branch``.

    Examples
    --------
    >>> read_git_status("# branch.oid 4f2c\n# branch.head main\n1 .M N... 100644 a.py\n")
    {'commit': '4f2c', 'branch': 'main', 'changed_files': 1}
    """
    lines = text.splitlines()
    heads = dict(line.split(" ", 2)[1:] for line in lines if line.startswith("# branch."))
    return {
        "commit": heads.get("branch.oid", ""),
        "branch": heads.get("branch.head", ""),
        "changed_files": sum(not line.startswith("#") for line in lines),
    }


def package_versions(loaded: Mapping[str, Any] = sys.modules) -> dict[str, str]:
    """Versions of Python and of the packages that are loaded, as they tell them.

    Nothing is imported for it, and no package's own code is run.
    """
    names = {*filterfalse(_inner.__contains__, loaded)}
    _inner.update(filter(_is_inner, names))
    found = {"python": platform.python_version()}
    for name in sorted(names - _inner):
        # From `__dict__`, as attribute access may run a lazy package's `__getattr__`.
        version = getattr(loaded.get(name), "__dict__", {}).get("__version__")
        if isinstance(version, str):
            found[name] = str(version)
    return found


_inner: set[str] = set()
"""Modules that are no packages by themselves: of thousands, each name is looked at once."""


def _is_inner(name: str) -> bool:
    return "." in name or name.startswith("_") or name in sys.stdlib_module_names
