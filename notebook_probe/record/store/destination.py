"""Destination of an export: overwrites only on request, leaves nothing half-written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from notebook_probe.errors import MissingExtraError, ProbeError, RecordWriteError

__all__ = ["import_extra", "new_file", "new_files"]


@contextmanager
def new_file(path: str | PathLike[str], *, overwrite: bool) -> Iterator[Path]:
    """Yield a temporary file that is renamed to ``path`` at the end.

    Raises
    ------
    RecordWriteError
        Something exists there, or it cannot be written.
    """
    target = Path(path).expanduser()
    if target.exists() and not (overwrite and target.is_file()):
        how = "; overwrite=True replaces it" if target.is_file() else ""
        raise RecordWriteError(f"{target} exists already{how}")
    partial = target.with_name(f".{target.name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)  # a killed writer's, or a link to something else
        yield partial
        partial.replace(target)
    except ProbeError:
        raise
    except OSError as error:
        raise RecordWriteError(f"cannot write {target}: {error}") from error
    finally:
        with suppress(OSError):  # no folder could be made, which the error above says
            partial.unlink(missing_ok=True)


def new_files(folder: str | PathLike[str]) -> Path:
    """Return the empty folder to write into, made if missing.

    Raises
    ------
    RecordWriteError
        It is not empty, or it cannot be made.
    """
    target = Path(folder).expanduser()
    try:
        target.mkdir(parents=True, exist_ok=True)
        is_used = any(target.iterdir())
    except OSError as error:
        raise RecordWriteError(f"cannot make the folder {target}: {error}") from error
    if is_used:
        raise RecordWriteError(f"{target} is not empty; a new or empty folder is needed")
    return target


def import_extra(library: str, extra: str, what: str) -> Any:
    """Return the module ``library``; MissingExtraError says how to get it."""
    try:
        return import_module(library)
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {library}: pip install 'notebook-probe[{extra}]'"
        ) from error
