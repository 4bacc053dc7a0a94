"""From a recorded run to the picture of one quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import notebook_probe as nbp
from notebook_probe.figures.densities import densities
from notebook_probe.figures.style import number
from notebook_probe.quantities import Quantity
from tools.pictures.scale import Values
from tools.pictures.scene import Scene, Shown
from tools.pictures.svg import lines, map_of

__all__ = ["picture"]

MOST_MODULES, MOST_COLUMNS = 3, 80
WHOLE = "(root)"
BINS = {"-1": 8, "-1e-6": 18, "0": 31, "1e-6": 44, "1": 54, "NaN": 63}
"""Some bins of the histograms, by what they hold."""


def picture(run: nbp.OpenedRun, quantity: Quantity, scene: Scene) -> str:
    """The SVG of a quantity; empty where the run has nothing finite of it."""
    shown = scene.shown.get(quantity.name, Shown())
    modules = shown.modules or scene.modules or tuple(map(str, run.data.module.values))
    found = {module: _series(run, module, quantity.name) for module in modules}
    some = {module: array for module, array in found.items() if array is not None}
    if not some:
        return ""
    chosen = list(some) if shown.modules else _telling(some)
    if quantity.axis is None:
        series = {_name(module): (_steps(some[module]), _values(some[module])) for module in chosen}
        unit = "" if quantity.units == "1" else quantity.units
        return lines(series, "step", unit, log=shown.log, marks=shown.marks, events=scene.events)
    module = chosen[len(chosen) // 2]
    (along,) = (dim for dim in some[module].dims if dim != "step")
    special = next((draw for part, draw in NAMED.items() if part in quantity.name), None)
    return (special or VECTORS[str(along)])(some[module], _name(module))


def _series(run: nbp.OpenedRun, module: str, name: str) -> Any:
    """What was recorded of it there; None if nothing."""
    try:
        array = run.series(module, name).load()
    except nbp.UnknownNameError:
        return None
    return array if np.isfinite(array.values).any() else None


def _telling(found: Mapping[str, Any]) -> list[str]:
    """Three modules: the layers rather than the whole, those that change if any does."""
    layers = [module for module in found if module != WHOLE] or list(found)
    changing = [module for module in layers if np.nanstd(found[module].values) > 0]
    some = changing or layers
    places = {round(place) for place in np.linspace(0, len(some) - 1, MOST_MODULES)}
    return [some[place] for place in sorted(places)]


def _name(module: str) -> str:
    return "model" if module in ("", WHOLE) else module


def profiles(array: Any, module: str) -> str:
    """A vector along its axis, at the first, the middle and the last step with numbers."""
    values, along = _matrix(array)
    with_numbers = np.flatnonzero(np.isfinite(values).any(1))
    chosen = with_numbers[[0, len(with_numbers) // 2, -1]]
    place = _along(array, along)
    shown = {f"step {int(array.step[row])}": (place, _positive(values[row])) for row in chosen}
    return lines(shown, LABELS.get(along, along), module, ordered=True, log=True)


def entries(array: Any, module: str) -> str:
    """Each number of a short vector over the steps."""
    values, along = _matrix(array)
    names = [_entry(along, place) for place in _along(array, along)]
    shown = {name: (_steps(array), values[:, n]) for n, name in enumerate(names)}
    return lines(shown, "step", module, ordered=True)


def heads_or_channels(array: Any, module: str) -> str:
    """Few entries as lines, many as a map."""
    return (entries if array.shape[-1] <= 8 else channels)(array, module)


def channels(array: Any, module: str) -> str:
    """A vector per step, as a map of channels over steps."""
    values, along = _matrix(array)
    return _over_steps(array, values, _along(array, along), f"channel of {module}", "")


def buckets(array: Any, module: str) -> str:
    """A number for each bucket, as a map of buckets over steps."""
    values, along = _matrix(array)
    return _over_steps(array, values, _along(array, along), "bucket", "")


def histogram(array: Any, module: str) -> str:
    """Counts in bins over the steps."""
    values, _ = _matrix(array)
    rows = np.arange(values.shape[1], dtype=float)
    ticks = BINS if values.shape[1] == 64 else None
    with np.errstate(divide="ignore"):
        counts = np.log10(values)
    return _over_steps(array, counts, rows, f"bin, {module}", "log10 count", ticks)


def shares(array: Any, module: str) -> str:
    """Histograms in bins of changing width, as densities over the values."""
    array = array[np.linspace(0, array.sizes["step"] - 1, MOST_COLUMNS).round().astype(int)]
    found = densities(array.drop_duplicates("step"), "linear_bin")
    rows = np.linspace(found.low, found.high, len(found.values))
    steps = np.unique(_steps(array))
    ticks = {number(row): row for row in (rows[0], 0.0, rows[-1]) if rows[0] <= row <= rows[-1]}
    return map_of(found.values, steps, rows, "step", f"value, {module}", "share per unit", ticks)


def points(array: Any, module: str) -> str:
    """Numbers without order, as points over the steps."""
    values = _matrix(array)[0][:, :2]
    steps = np.repeat(_steps(array), values.shape[1])
    return lines(
        {"": (steps, values.reshape(-1))}, "step", "index of the worst two", points=True, log=False
    )


def plane(array: Any, module: str) -> str:
    """The last of the planes, as a map."""
    values, _ = _matrix(array)
    last = values[np.flatnonzero(np.isfinite(values).any(1))[-1]]
    side = round(len(last) ** 0.5)
    [x] = (name for name in array.coords if str(name).endswith("_x"))
    ends = np.unique(array[x].values.astype(float))
    return map_of(last.reshape(side, side).T, ends, ends, "x", "y", "loss")


VECTORS: Mapping[str, Callable[[Any, str], str]] = {
    "bin": histogram,
    "linear_bin": shares,
    "regular_bin": histogram,
    "quantile": entries,
    "index": heads_or_channels,
    "distance": profiles,
    "plane": plane,
    "path_plane": plane,
    "direction": entries,
    "nth_worst": entries,
    "bucket": buckets,
}
"""How a vector is drawn, by its axis."""
NAMED = {"eigs": profiles, "singular_values": profiles, "worst_samples": points}
"""The same for parts of names, which go before."""
ENTRIES = {"index": "head", "nth_worst": "no.", "direction": "no."}
LABELS = {"index": "number of the value, from 0", "distance": "distance a"}


def _matrix(array: Any) -> tuple[Values, str]:
    """Values (step, along), without what is missing at the end of every row."""
    (along,) = (dim for dim in array.dims if dim != "step")
    values = array.transpose("step", along).values.astype(float)
    used = np.flatnonzero(np.isfinite(values).any(0))
    return values[:, : used[-1] + 1], str(along)


def _along(array: Any, along: str) -> Values:
    n = _matrix(array)[0].shape[1]
    known = array[along].values if along in array.coords else np.arange(array.sizes[along])
    return np.asarray(known[:n], float)


def _entry(along: str, place: float) -> str:
    return f"{100 * place:g} %" if along == "quantile" else f"{ENTRIES[along]} {place:g}"


def _over_steps(
    array: Any,
    values: Values,
    rows: Values,
    y_label: str,
    legend: str,
    ticks: Mapping[str, float] | None = None,
) -> str:
    kept = np.unique(np.linspace(0, len(values) - 1, MOST_COLUMNS).round().astype(int))
    steps = _steps(array)[kept]
    return map_of(values[kept].T, steps, rows, "step", y_label, legend, ticks)


def _positive(values: Values) -> Values:
    return np.where(values > 0, values, np.nan)


def _steps(array: Any) -> Values:
    return np.asarray(array.step.values, float)


def _values(array: Any) -> Values:
    return np.asarray(array.values, float)
