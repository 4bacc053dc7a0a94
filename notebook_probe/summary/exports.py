"""Tensors as numpy files, written by separate threads."""

from __future__ import annotations

import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import numpy as np
from torch import Tensor

from notebook_probe.errors import RecordWarning

__all__ = ["SummaryExports"]

READ_ONLY = 0o444
MOST_WAITING = 4
"""Tensors per thread that may wait to be written; further ones are dropped and counted."""


class SummaryExports:
    """Writes ``export_<start>/tensor/<tag>_<unit>.npy`` below a folder.

    Errors are listed by `problems`; nothing is raised.

    Parameters
    ----------
    folder : Path
    n_threads : int
        Maximum number of threads that write at once.

    Attributes
    ----------
    folder : Path
        Folder of the files of this start.

    Examples
    --------
    >>> import tempfile, torch
    >>> exports = SummaryExports(Path(tempfile.mkdtemp()), 2)
    >>> exports.write("conv1/out", 10, torch.ones(2))
    >>> exports.finish()
    >>> [path.name for path in exports.folder.iterdir()], exports.problems()
    (['conv1%2Fout_10.npy'], [])
    """

    def __init__(self, folder: Path, n_threads: int) -> None:
        self.folder = folder / f"export_{int(time.time())}" / "tensor"
        self._n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None
        # Threads of the pool count down what the training thread counts up.
        self._lock, self._n_waiting = threading.Lock(), 0
        self._problems: list[str] = []
        self._n_told = 0

    def write(self, tag: str, unit: int, value: Tensor) -> None:
        """Hand a copy of a tensor to a thread."""
        with self._lock:
            # Each waiting tensor is a copy in memory; training must not wait for a slow disk.
            if self._n_waiting >= MOST_WAITING * self._n_threads:
                self._problems.append(f"{tag} of unit {unit} was dropped: the disk is too slow")
                return
            self._n_waiting += 1
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_threads, "notebook_probe export")
        # Cloned on the training thread: the next update changes the tensor in place.
        # Quoted: a tag such as "train/loss" must not make a folder.
        given = self.folder / f"{quote(tag, safe='')}_{unit}.npy", value.detach().clone()
        try:
            self._pool.submit(self._save, *given)
        except RuntimeError:  # the interpreter ends
            self._save(*given)

    def problems(self) -> list[str]:
        """Return the errors so far, as text."""
        with self._lock:
            return [*self._problems]

    def tell(self) -> None:
        """Warn of the first problem, once."""
        problems = self.problems()
        if problems and not self._n_told:
            self._n_told = len(problems)
            warnings.warn(f"a tensor was not exported: {problems[0]}", RecordWarning, stacklevel=2)

    def finish(self) -> None:
        """Wait until all is written; more can be written afterwards."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _save(self, path: Path, value: Tensor) -> None:
        try:
            # On the thread of the pool: a copy to the host would make the training wait.
            array = value.cpu()
            path.parent.mkdir(parents=True, exist_ok=True)
            # An earlier unit of this name is read-only.
            path.unlink(missing_ok=True)
            try:
                np.save(path, array.numpy() if _has_dtype(array) else array.float().numpy())
            except OSError:
                path.unlink(missing_ok=True)  # the part of it that there was room for
                raise
            path.chmod(READ_ONLY)
        except Exception as error:
            with self._lock:
                self._problems.append(f"{path.name}: {type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._n_waiting -= 1


def _has_dtype(value: Tensor) -> bool:
    """Return whether numpy has this dtype; it has no bfloat16."""
    try:
        value.numpy()
    except TypeError:
        return False
    return True
