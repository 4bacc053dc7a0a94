"""Draw docs/quantities/pictures: each quantity as it went in one short training.

Run it from the checkout: ``python -m tools.quantity_pictures``; it takes about a minute.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import notebook_probe as nbp
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.table import built_in
from tools.quantity_pages import PICTURES, ROOT
from tools.quantity_run import train
from tools.svg import Values, lines

MOST_MODULES = 3
WHOLE = "(root)"


def main() -> None:
    """Train, draw what was recorded, and say what was not."""
    folder = ROOT / PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    with tempfile.TemporaryDirectory() as temporary:
        store = Path(temporary) / "run.zarr"
        train(built_in(), store)
        run = nbp.open_run(store)
        drawn = {quantity.name: picture(run, quantity) for quantity in built_in()}
    for name, text in drawn.items():
        if text:
            (folder / f"{name}.svg").write_text(text, "utf-8")
    missing = [name for name, text in drawn.items() if not text]
    print(f"{len(drawn) - len(missing)} pictures; nothing was measured of: {', '.join(missing)}")


def picture(run: nbp.OpenedRun, quantity: Quantity) -> str:
    """The SVG of a quantity; empty where the run has nothing finite of it."""
    modules = map(str, run.data.module.values)
    found = {module: _series(run, module, quantity.name) for module in modules}
    some = {module: array for module, array in found.items() if array is not None}
    if not some:
        return ""
    telling = _telling(some)
    chosen = [telling[place] for place in _spread(len(telling))]
    if quantity.axis is None:
        return lines({name: (_steps(some[name]), _values(some[name])) for name in chosen}, "step")
    return _profiles(some[chosen[len(chosen) // 2]])


def _telling(found: dict[str, Any]) -> list[str]:
    """The modules whose series say most: the layers rather than the whole, what changes at all."""
    layers = [module for module in found if module != WHOLE] or list(found)
    changing = [module for module in layers if _changes(found[module].values)]
    return changing or layers


def _changes(values: Values) -> bool:
    finite = values[np.isfinite(values)]
    return bool(finite.max() > finite.min())


def _series(run: nbp.OpenedRun, module: str, name: str) -> Any:
    """What was recorded of it there; None if nothing."""
    try:
        array = run.series(module, name).load()
    except nbp.UnknownNameError:
        return None
    return array if np.isfinite(array.values).any() else None


def _spread(n: int) -> list[int]:
    """The first, the middle and the last of n."""
    return sorted({0, n // 2, n - 1})[:MOST_MODULES]


def _profiles(array: Any) -> str:
    """A vector along its axis, at the first, the middle and the last step with numbers."""
    values = array.transpose("step", ...).values.astype(float)
    with_numbers = [step for step, row in enumerate(values) if np.isfinite(row).any()]
    chosen = [with_numbers[place] for place in _spread(len(with_numbers))]
    (along,) = (dim for dim in array.dims if dim != "step")
    length = 1 + max(int(np.flatnonzero(np.isfinite(values[place]))[-1]) for place in chosen)
    index = np.arange(length, dtype=float)
    shown = {f"step {int(array.step[place])}": (index, values[place, :length]) for place in chosen}
    return lines(shown, str(along))


def _steps(array: Any) -> Values:
    return np.asarray(array.step.values, float)


def _values(array: Any) -> Values:
    return np.asarray(array.values, float)


if __name__ == "__main__":
    main()
