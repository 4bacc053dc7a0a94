"""What notebooks of papers must have found, read from the records that they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import notebook_probe as nbp

__all__ = ["CLAIMS"]


def edge_of_stability(folder: Path) -> None:
    """Full-batch gradient descent: sharpness rises to 2/lr and hovers there (2103.00065)."""
    runs = [nbp.open_run(path) for path in sorted(folder.glob("runs/*.zarr"))]
    assert len(runs) == 2
    for run in runs:
        sharpness, lr = run.series("", "sharpness"), run.series("", "lr")
        of_edge = (sharpness * lr / 2).values
        assert of_edge[0] < 0.6
        assert 0.95 < of_edge[-10:].mean() < 1.1
        assert abs(of_edge[-10:] - 1).max() < 0.2


CLAIMS: dict[str, Callable[[Path], None]] = {"edge_of_stability": edge_of_stability}
"""By the name of the notebook."""
