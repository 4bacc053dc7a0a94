"""Collection of a run's histograms while a reader reads its files."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from notebook_probe.old_runs.allowance import Allowance
from notebook_probe.old_runs.naming import module_and_quantity
from notebook_probe.old_runs.run import OldHistograms

__all__ = ["MOST_BINS", "HistogramPoints"]

MOST_BINS = 4096
LARGEST_STEP = 2**62
PATH = re.compile(r"[\w.]*\w\.[\w.]*\w", re.ASCII)
"""Path of a module or parameter with a dot, which a tag may be by itself."""
GRADIENT = ".grad"

Bins = npt.NDArray[np.float64]


class HistogramPoints:
    """Histograms by name; of a step the last one counts.

    Parameters
    ----------
    allowance : Allowance
        Each bin counts as three numbers.
    """

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._found: dict[str, dict[int, tuple[int, Bins]]] = {}
        self.n_odd = 0

    def add(
        self,
        name: str,
        step: int,
        time_ms: float,
        edges: tuple[Sequence[float], Sequence[float]],
        counts: Sequence[float],
    ) -> None:
        """Add one histogram, with the left and right edges of its bins.

        Raises
        ------
        SpentError
            There is too much of it.
        """
        left, right = edges
        is_sound = 0 < len(counts) <= MOST_BINS and len(left) == len(right) == len(counts)
        if not is_sound or not 0 <= step < LARGEST_STEP or not name.isprintable():
            self.n_odd += 1
            return
        self._allowance.take_values(3 * len(counts))
        self._allowance.check_names(len(self._found) + 1)
        bins = np.array([left, right, counts], np.float64)
        self._found.setdefault(name, {})[step] = int(time_ms), bins

    def series(self) -> tuple[OldHistograms, ...]:
        """Return the histograms by module and quantity, with growing steps and equal shapes."""
        found: dict[tuple[str, str], OldHistograms] = {}
        for name, rows in self._found.items():
            module, quantity = _place(name)
            n, first = 1, quantity
            while (module, quantity) in found:
                n += 1
                quantity = f"{first}_{n}"
            steps = sorted(rows)
            widest = max(bins.shape[1] for _, bins in rows.values())
            found[module, quantity] = OldHistograms(
                module,
                quantity,
                name,
                np.array(steps, np.int64),
                np.array([rows[step][0] for step in steps], np.int64),
                np.stack([_padded(rows[step][1], widest) for step in steps]),
            )
        return tuple(found.values())


def _place(name: str) -> tuple[str, str]:
    """Return the module, empty for the whole model, and the name of the quantity."""
    found = module_and_quantity(name)
    if found is not None:
        return found[0], f"{found[1]}_histogram"
    if PATH.fullmatch(name):
        if name.endswith(GRADIENT):
            return name.removesuffix(GRADIENT), "logged_gradient_histogram"
        return name, "logged_histogram"
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:100]
    return "", f"logged_{plain or 'unnamed'}_histogram"


def _padded(bins: Bins, n: int) -> Bins:
    """Append empty bins without width, as arrays of a record have one shape."""
    missing = n - bins.shape[1]
    if not missing:
        return bins
    end = np.array([[bins[1, -1]], [bins[1, -1]], [0.0]])
    return np.concatenate([bins, np.repeat(end, missing, axis=1)], axis=1)
