"""What a kernel would say to the panel, with numbers that a test knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.explorer.messages.frames import HeatFrame, LinesFrame
from notebook_probe.explorer.messages.wire import (
    VERSION,
    ModelMessage,
    QuantityRow,
    SelectionMessage,
    StatusMessage,
    TicketRow,
    ViewRow,
)
from notebook_probe.record.views.thinning.average import Average
from notebook_probe.record.views.thinning.colour_scale import ColourMap

Module = tuple[str, str, int, int, int]
Message = Mapping[str, Any]

STEPS = 340
"""Rows of the invented run."""

DIGITS: list[Module] = [
    ("(root)", "Sequential", 60886, 0, -1),
    ("stem", "Sequential", 384, 0, 0),
    ("stem.conv1", "Conv2d", 320, 320, 1),
    ("stem.bn1", "BatchNorm2d", 64, 64, 1),
    ("stem.relu1", "ReLU", 0, 0, 1),
    ("block", "Sequential", 55680, 0, 0),
    ("block.conv2", "Conv2d", 18496, 18496, 5),
    ("block.bn2", "BatchNorm2d", 128, 128, 5),
    ("block.relu2", "ReLU", 0, 0, 5),
    ("block.conv3", "Conv2d", 36928, 36928, 5),
    ("block.bn3", "BatchNorm2d", 128, 128, 5),
    ("block.relu3", "ReLU", 0, 0, 5),
    ("pool", "AdaptiveAvgPool2d", 0, 0, 0),
    ("head", "Sequential", 4810, 0, 0),
    ("head.fc1", "Linear", 4160, 4160, 13),
    ("head.drop", "Dropout", 0, 0, 13),
    ("head.fc2", "Linear", 650, 650, 13),
]
COSTS = {"weight_norm": 6.1, "grad_norm": 8.4, "output_std": 11.0, "zero_fraction": 9.2}
WEIGHTED = [path for path, _, _, own, _ in DIGITS if own]

QUANTITIES: list[QuantityRow] = [
    {
        "name": "weight_norm",
        "summary": "Euclidean norm of the weight.",
        "needs": ["weight"],
        "units": "1",
        "value": "number",
        "question": "Is it still improving?",
        "topic": "Still improving?",
        "formula": "",
        "aliases": [],
        "every_step": False,
        "usual": None,
        "misfits": [],
    },
    {
        "name": "grad_norm",
        "summary": "Euclidean norm of the gradient of all parameters.",
        "needs": ["grad"],
        "units": "1",
        "value": "number",
        "question": "Is it still improving?",
        "topic": "Still improving?",
        "formula": "",
        "aliases": [],
        "every_step": False,
        "usual": None,
        "misfits": [],
    },
    {
        "name": "update_ratio",
        "summary": "Norm of one update over the norm of the weight.",
        "needs": ["update", "weight"],
        "units": "1",
        "value": "number",
        "question": "Is it still improving?",
        "topic": "Still improving?",
        "formula": "",
        "aliases": [],
        "every_step": False,
        "usual": 1e-3,
        "misfits": [],
    },
    {
        "name": "output_std",
        "summary": "Standard deviation of the output.",
        "needs": ["output"],
        "units": "1",
        "value": "number",
        "question": "Is it still improving?",
        "topic": "Still improving?",
        "formula": "",
        "aliases": [],
        "every_step": False,
        "usual": None,
        "misfits": [],
    },
    {
        "name": "zero_fraction",
        "summary": "Share of zeros in the output.",
        "needs": ["output"],
        "units": "1",
        "value": "number",
        "question": "Is it still improving?",
        "topic": "Still improving?",
        "formula": "",
        "aliases": [],
        "every_step": False,
        "usual": None,
        "misfits": [],
    },
    {
        "name": "output_histogram",
        "summary": "Histogram of the output.",
        "needs": ["output"],
        "units": "1",
        "value": "vector",
        "question": "Is it still improving?",
        "topic": "Still improving?",
        "formula": "",
        "aliases": [],
        "every_step": False,
        "usual": None,
        "misfits": [],
    },
]


TAKES_NONE = "a single call takes no probe; attach it at its module"


def place_kinds(
    modules: Sequence[Module], entries: Sequence[tuple[str, str]]
) -> tuple[list[int], list[tuple[str, bool, bool]]]:
    """Parameter, call, then one kind for each (class, has own parameters, has any)."""
    keys = [(kind, own > 0, n > 0) for _, kind, n, own, _ in modules]
    kinds = list(dict.fromkeys(keys))
    of_entries = [int(name.endswith("]")) for name, _ in entries]
    return [*(2 + kinds.index(key) for key in keys), *of_entries], kinds


def misfits(row: QuantityRow, kinds: Sequence[tuple[str, bool, bool]]) -> list[str]:
    """As the kernel decides for these quantities: by parameters."""

    def misfit(kind: str, has_own: bool, has_any: bool) -> str:
        there = {"weight": has_own, "update": has_own, "grad": has_any}
        lack = next((need for need in row["needs"] if not there.get(need, True)), "")
        return f"needs '{lack}'; {kind} has none" if lack else ""

    return ["", TAKES_NONE, *(misfit(*kind) for kind in kinds)]


def model_message(
    modules: Sequence[Module] = tuple(DIGITS),
    live: bool = True,
    name: str = "digits-cnn",
    entries: Sequence[tuple[str, str]] = (),
) -> ModelMessage:
    """The module table, what else stands on its axis, and the catalogue."""
    places, kinds = place_kinds(modules, entries)
    return {
        "v": VERSION,
        "type": "model",
        "name": name,
        "location": "runs/digits-cnn.zarr",
        "live": live,
        "modules": list(modules),
        "entries": list(entries),
        "kinds": places,
        "quantities": [{**row, "misfits": misfits(row, kinds)} for row in QUANTITIES],
    }


def status_message(**changes: Any) -> StatusMessage:
    """A run at step 1240 with the default probes; ``changes`` replace single fields."""
    status: StatusMessage = {
        "v": VERSION,
        "type": "status",
        "state": "training",
        "unheard": False,
        "step": 1240,
        "end_step": -1,
        "epoch": -1,
        "seconds_left": None,
        "rate": 87.4,
        "cost_percent": 2.1,
        "budget": "",
        "progress": "",
        "route": "own subshell",
        "scalar": ("loss", 0.2134, loss_curve()),
        "attached": [(path, "grad_norm", "every(1)") for path in WEIGHTED],
        "recorded": {
            "grad_norm": WEIGHTED,
            "weight_norm": WEIGHTED,
            "update_ratio": WEIGHTED,
            "output_std": WEIGHTED,
        },
        "logged": [],
        "tallies": [(1239, 8.4, 0.07) for _ in WEIGHTED],
        "silent": [],
        "costs": COSTS,
        "vectors": {},
        "problems": [],
        "tickets": [],
        "can": {"pause": "", "resume": "", "step": "Pause first", "stop": ""},
        "record": "runs/digits-cnn.zarr",
        "nbytes": 3_200_000,
        "flushed_age_s": 0.41,
        "dropped_rows": 0,
        "device": "cpu",
    }
    return {**status, **changes}  # type: ignore[typeddict-item]


def ticket(id: str, state: Any, applied: int = -1, text: str = "") -> TicketRow:
    return {"id": id, "state": state, "queued_step": 1236, "applied_step": applied, "text": text}


def view_row(name: str, **changes: Any) -> ViewRow:
    """A registered view that has not been drawn; ``changes`` replace single fields."""
    row: ViewRow = {
        "name": name,
        "summary": "",
        "folded": False,
        "cost_s": None,
        "every_s": None,
        "error": "",
        "where": "",
        "n_errors": 0,
    }
    return {**row, **changes}  # type: ignore[typeddict-item]


def selection_message(**changes: Any) -> SelectionMessage:
    """Gradient norms as home, nothing drawn; ``changes`` replace single fields."""
    selection: SelectionMessage = {
        "v": VERSION,
        "type": "selection",
        "home": "grad_norm",
        "series": [],
        "window": None,
        "log_heat": True,
        "cells": "max",
        "log_y": True,
        "y_limits": None,
        "outliers": False,
        "charts": [],
        "log_x": False,
        "smooth": 0.0,
        "x_axis": "step",
        "rows": [],
        "folds": [],
        "others": [],
        "ratio_to": "",
        "aligned": "step",
        "apart": (2.0, 10),
        "grouped": False,
        "chosen_colors": [],
    }
    return {**selection, **changes}  # type: ignore[typeddict-item]


def lines_message(
    series: Mapping[tuple[str, str], tuple[npt.ArrayLike, npt.ArrayLike]],
    seq: int = 1,
    x0: float = 0.0,
    events: Sequence[tuple[float, str, str]] = (),
    smooth: float = 0.0,
    averaged: float = 1.0,
    log_y: bool = True,
    charts: Mapping[tuple[str, str], int] = MappingProxyType({}),
    **changes: Any,
) -> tuple[LinesFrame, list[bytes]]:
    """(module, quantity) -> (steps, values), as one frame and its buffer.

    Series in ``charts`` have a chart other than the first, on a linear axis. With a weight
    ``smooth`` every second point of each average, too, of the logarithms. ``changes`` replace
    single fields.
    """
    rows: list[Any] = []
    parts: list[npt.NDArray[np.float32]] = []
    offset = 0
    for colour, ((module, quantity), (steps, values)) in enumerate(series.items()):
        x = np.asarray(steps, dtype=np.float64)
        y = np.asarray(values, dtype=np.float32)
        broken = ~np.isfinite(y)
        drawn = slice(None, None, 2) if smooth else slice(0)
        average = Average(smooth, log=True).follow(y[:, None])[drawn, 0]
        parts += [(x - x0).astype("<f4"), y, (x - x0)[drawn].astype("<f4"), average.astype("<f4")]
        rows.append(
            {
                "module": module,
                "quantity": quantity,
                "chart": charts.get((module, quantity), 0),
                "log_y": log_y and (module, quantity) not in charts,
                "colour": colour,
                "n": len(x),
                "n_average": len(average),
                "offset": offset,
                "n_rows": len(x),
                "first_step": int(x[0]) if len(x) else -1,
                "last_step": int(x[-1]) if len(x) else -1,
                "last_value": float(y[-1]) if len(y) and np.isfinite(y[-1]) else None,
                "n_nonfinite": int(broken.sum()),
                "weight": smooth,
                "marks": (x - x0)[broken].tolist(),
            }
        )
        offset += 2 * (len(x) + len(average))
    frame: LinesFrame = {
        "v": VERSION,
        "type": "lines",
        "seq": seq,
        "layout": [[(1, part.nbytes) for part in parts]],
        "x0": x0,
        "x_axis": "step",
        "knots": [(0.0, 0.0), (1.0, 1.0)],
        "refused": {},
        "smooth": smooth,
        "log_y": log_y,
        "averaged": averaged,
        "series": rows,
        "events": list(events),
    }
    buffers = [b"".join(part.tobytes() for part in parts)]
    return {**frame, **changes}, buffers  # type: ignore[typeddict-item]


def heat_message(
    cells: npt.ArrayLike,
    rows: Sequence[str],
    *,
    seq: int = 1,
    quantity: str = "grad_norm",
    first_step: int = 0,
    last_step: int | None = None,
    maximum: npt.ArrayLike | None = None,
    unmeasured: npt.ArrayLike | None = None,
    carried: npt.ArrayLike | None = None,
    offsets: npt.NDArray[np.unsignedinteger] | None = None,
    before: Sequence[int] = (),
    end_step: int | None = None,
    limits: tuple[float, float] | None = None,
    log: bool = True,
    colours: ColourMap = "value",
) -> tuple[HeatFrame, list[bytes]]:
    """Rows x columns of means; NaN and infinity are marked unless they are ``unmeasured``.

    What is ``carried`` was measured before its column; ``offsets`` are the last measured steps.
    """
    mean = np.asarray(cells, dtype="<f4")
    states = np.where(np.isfinite(mean), 0, 2).astype(np.uint8)
    if unmeasured is not None:
        states[np.asarray(unmeasured, dtype=bool)] = 1
    finite = mean[states == 0]
    shown_states = states + (0 if carried is None else 4 * np.asarray(carried, np.uint8))
    last = first_step + mean.shape[1] - 1 if last_step is None else last_step
    within = np.empty(0, np.uint8) if offsets is None else offsets
    positive = finite[finite > 0]
    columns = mean.shape[1]
    largest = mean if maximum is None else np.asarray(maximum, dtype="<f4")
    shown = largest[states == 0]
    low, high = limits or (positive.min(initial=np.inf), shown.max(initial=-np.inf))
    frame: HeatFrame = {
        "v": VERSION,
        "type": "heat",
        "seq": seq,
        "layout": [
            [(len(rows), size * columns)] for size in (4, 1, 4, within.nbytes // states.size)
        ],
        "quantity": quantity,
        "rows": list(rows),
        "columns": columns,
        "first_step": first_step,
        "last_step": last,
        "end_step": last if end_step is None else end_step,
        "before": list(before),
        "low": float(low) if np.isfinite(low) else None,
        "high": float(high) if np.isfinite(low) else None,
        "lowest": float(shown.min()) if shown.size else None,
        "highest": float(shown.max()) if shown.size else None,
        "log": log,
        "colours": colours,
    }
    arrays = mean, shown_states.astype(np.uint8), largest.astype("<f4"), within
    return frame, [array.tobytes() for array in arrays]


def loss_curve() -> list[float | None]:
    steps = np.arange(90)
    noise = np.random.default_rng(3).normal(0, 0.05, 90)
    return [float(value) for value in 0.2 + 2.1 * np.exp(-steps / 25) + noise]


def gradient_norms(seed: int = 7) -> dict[str, npt.NDArray[np.float64]]:
    """One slowly wandering positive series per weighted module; block.conv3 fades away."""
    random = np.random.default_rng(seed)
    series = {}
    t = np.arange(STEPS)
    for k, path in enumerate(WEIGHTED):
        level = -1.9 + 0.3 * k + 0.5 * np.exp(-t / 14) - 0.9 * t / STEPS
        wander = np.zeros(STEPS)
        for i in range(1, STEPS):
            wander[i] = 0.92 * wander[i - 1] + 0.06 * random.normal()
        fading = -1.3 * (1 - np.exp(-np.maximum(0, t - 112) / 40)) if path == "block.conv3" else 0
        spike = 0.9 * (np.abs(t - 205) < 3)
        series[path] = 10.0 ** (level + wander + fading + spike)
    return series
