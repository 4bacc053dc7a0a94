"""What the kernel tells of other runs: their list, lines, ratios and where they part."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from playwright.sync_api import Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage

NOW_MS = 1_790_000_000_000


def run(name: str, last: float | None = 0.2, **changes: Any) -> dict[str, Any]:
    """A row of the list as the kernel tells it."""
    line = [2.0 / (1 + k / 6) for k in range(30)]
    row = {
        "run": f"runs/{name}.zarr",
        "name": name,
        "begun_ms": NOW_MS,
        "steps": 1860,
        "finished": True,
        "scalar": "loss",
        "line": [*line, last],
        "last": last,
        "differs": "",
        "problem": "",
    }
    return {**row, **changes}


RUNS = [
    run("digits-cnn-8", 0.213, differs="lr 1e-3, here 3e-3", begun_ms=NOW_MS + 5_000_000),
    run("digits-cnn-7", 0.187, differs="batch 128, here 64"),
    run("digits-cnn-5", 0.164, differs="GroupNorm, here BatchNorm; seed 3, here 0"),
    run("digits-cnn-4", None, differs="lr 3e-2, here 3e-3", steps=402),
    run("digits-cnn-3", 0.4),
    run("digits-cnn-2", problem="cannot be read: written by a newer version", line=[], steps=0),
]


def tells(panel: PanelPage, runs: Sequence[Any] = tuple(RUNS), **changes: Any) -> None:
    told: dict[str, Any] = {"folder": "runs", "listed": True, "problem": "", "n_left_out": 0}
    told |= {"references": [], "are_references": False}
    state = {**told, "own": None, "runs": list(runs), "refused": {}, **changes}
    panel.say({"v": 1, "type": "compare", **state})


def dialog(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("dialog", name="Runs")


def tick(panel: PanelPage, name: str) -> Locator:
    return panel.page.get_by_role("checkbox", name=f"Compare with {name}", exact=True)


def chosen(panel: PanelPage) -> dict[str, Any]:
    """What the panel has asked the kernel to show, at last."""
    panel.page.wait_for_function("sent.some((m) => m.type === 'selection')")
    return panel.sent("selection")[-1]


def wait_chosen(panel: PanelPage, **fields: Any) -> None:
    panel.page.wait_for_function(
        """(fields) => { const last = sent.findLast((m) => m.type === "selection");
        return last && Object.entries(fields).every(([name, value]) =>
          JSON.stringify(last[name]) === JSON.stringify(value)); }""",
        arg=fields,
    )


def opened(panel: PanelPage) -> PanelPage:
    panel.action("runs").click()
    tells(panel)
    expect(dialog(panel)).to_be_visible()
    return panel


OTHERS = ["runs/digits-cnn-8.zarr", "runs/digits-cnn-5.zarr"]
CONV3 = ("block.conv3", "grad_norm")
LOSS = ("(root)", "loss")


def decay(to: float, seed: int, n: int = 1241) -> npt.NDArray[np.float64]:
    noise = np.random.default_rng(seed).normal(0, 0.05, n)
    return np.asarray(to + 2.3 * np.exp(-np.arange(n) / 120 + noise) * np.exp(noise))


def beside_message(
    lines: Mapping[tuple[str, str, str], tuple[npt.ArrayLike, ...]], **changes: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """(run, module, quantity) -> steps, values and, of a group, low and high."""
    series, parts, offset = [], [], 0
    for (run_, module, quantity), arrays in lines.items():
        n = len(np.asarray(arrays[0])) if arrays else 0
        head = {"run": run_, "module": module, "quantity": quantity, "n": n, "offset": offset}
        series.append({**head, "n_runs": 0 if run_ else 3, "banded": len(arrays) == 4})
        parts += [np.asarray(one, "<f4") for one in arrays]
        offset += n * len(arrays)
    message = {"v": 1, "type": "beside", "aligned": "step", "x0": 0.0, "series": series}
    return {**message, **changes}, [b"".join(part.tobytes() for part in parts)]


def compared(panel: PanelPage, **selection: Any) -> PanelPage:
    """Two others beside a run whose loss and one gradient norm are drawn."""
    steps = np.arange(1241)
    series = {LOSS: (steps, decay(0.14, 1)), CONV3: (steps, decay(1.1, 2))}
    panel.say(kernel.status_message(logged=["loss"]))
    chosen = {"series": list(series), "smooth": 0.9, "others": OTHERS, **selection}
    panel.say(kernel.selection_message(**chosen))
    tells(panel)
    panel.draw(*kernel.lines_message(series, smooth=0.9))
    return panel


def beside(panel: PanelPage) -> list[list[Any]]:
    panel.wait_frame()
    return list(json.loads(panel.lines.get_attribute("data-beside") or ""))


def two_beside() -> tuple[dict[str, Any], list[bytes]]:
    """One run that measured both, longer than this one, and one that has no gradient norm."""
    long, short = np.arange(0, 1860, 4), np.arange(0, 1860, 4)
    return beside_message(
        {
            (OTHERS[0], *LOSS): (long, decay(0.213, 3, 1860)[::4]),
            (OTHERS[0], *CONV3): (long, decay(0.29, 4, 1860)[::4]),
            (OTHERS[1], *LOSS): (short, decay(0.164, 5, 1860)[::4]),
            (OTHERS[1], *CONV3): (),
        }
    )


ROWS = kernel.WEIGHTED[:7]
PARTED = {"block.conv3": 412, "block.bn3": 431, "head.fc1": 455, "block.conv2": 520}


def halves(values: npt.ArrayLike) -> bytes:
    return (np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2").tobytes()


def ratio_message(
    apart: npt.ArrayLike, to: str = OTHERS[0], **changes: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """Rows x columns of decades; what is NaN was not measured in one of the runs."""
    cells = np.asarray(apart, "<f4")
    finite = cells[np.isfinite(cells)]
    message = {
        "v": 1,
        "type": "ratio",
        "quantity": "grad_norm",
        "to": to,
        "rows": ROWS[: len(cells)],
        "columns": cells.shape[1],
        "first_step": 0,
        "last_step": 4 * cells.shape[1] - 1,
        "end_step": 4 * cells.shape[1] - 1,
        "limit": 1.0,
        "signed": False,
        "lowest": float(finite.min()),
        "highest": float(finite.max()),
    }
    starts = np.broadcast_to(4 * np.arange(cells.shape[1]), cells.shape).astype("<i4")
    states = np.isnan(cells).astype(np.uint8)
    return {**message, **changes}, [halves(cells), states.tobytes(), starts.tobytes()]


def ratios() -> npt.NDArray[np.float64]:
    """Four rows part, one of them downwards; another is not measured at first."""
    columns = np.arange(310)
    cells = 0.05 * np.random.default_rng(2).normal(size=(7, 310))
    for module, step in PARTED.items():
        sign = -1.1 if module == "head.fc1" else 0.6
        cells[ROWS.index(module)] += sign / (1 + np.exp(-(columns - step / 4) / 4))
    cells[1, :40] = np.nan
    return cells


def parting_message(**changes: Any) -> dict[str, Any]:
    found = [
        {"module": module, "step": step, "there": "×2.1", "now": "×3.6"}
        for module, step in PARTED.items()
    ]
    message = {
        "v": 1,
        "type": "parting",
        "quantity": "grad_norm",
        "to": OTHERS[0],
        "text": "Differs from digits-cnn-8 at step 412: block.conv3 · grad_norm ×2.1",
        "bound": "×2",
        "found": found,
        "within": ["stem.conv1", "stem.bn1", "block.bn2"],
        "missing": [],
    }
    return {**message, **changes}


def divided(panel: PanelPage, **selection: Any) -> PanelPage:
    """The heat map shows the ratio to the first of two others."""
    compared(panel, ratio_to=OTHERS[0], **selection)
    values = np.random.default_rng(1).lognormal(size=(7, 310))
    panel.draw(*kernel.heat_message(values, ROWS, last_step=1239))
    panel.say(*two_beside())
    panel.say(*ratio_message(ratios()))
    panel.say(parting_message())
    panel.wait_frame()
    return panel


def drawer(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("region", name="Where the runs diverge")
