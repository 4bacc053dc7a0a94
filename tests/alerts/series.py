"""Series as trainings leave them, for the rules: a few rows of what each is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

STEADY = [1.0] * 12


def ranks(rows: int, *of_width: tuple[float, int]) -> dict[str, Any]:
    """Modules in order, each with its effective rank and the largest there could be."""
    return {
        "effective_rank": [[rank for rank, _ in of_width]] * rows,
        "effective_rank_share": [[rank / width for rank, width in of_width]] * rows,
        "loss": [[1.0] * len(of_width)] * rows,
    }


def rising(rank: Sequence[float]) -> dict[str, Any]:
    """A layer that begins with one direction and wins more, behind one that has twenty."""
    rows = [[20.0, one] for one in rank]
    shares = [[a / 64, b / 64] for a, b in rows]
    return {"effective_rank": rows, "effective_rank_share": shares, "loss": [[1.0] * 2] * len(rows)}


def running(mean: list[float], spread: list[float], calls: float = 1.0) -> dict[str, Any]:
    return {"bn_mean_tid": mean, "bn_var_tid": spread, "calls": [calls] * len(mean)}


def learned(*ranks: tuple[float, int]) -> dict[str, Any]:
    """Layers of which all have many directions at first."""
    first, then = [[9.0] * len(ranks)] * 3, [[rank for rank, _ in ranks]] * 9
    shares = [[rank / width for rank, (_, width) in zip(row, ranks, strict=True)] for row in first]
    return {
        "effective_rank": first + then,
        "effective_rank_share": shares + [[rank / width for rank, width in ranks]] * 9,
        "loss": [[1.0] * len(ranks)] * 12,
    }


def heads(name: str, values: list[float], head: float = 3) -> dict[str, Any]:
    number = {"attn_entropy_share": "attn_narrowest_head", "attn_max_logit": "attn_max_logit_head"}
    return {name: values, number[name]: [head] * len(values)}


def rates(ratio: float, cosine: float, n: int) -> dict[str, Any]:
    return {"update_ratio": [ratio] * n, "grad_cosine": [cosine] * n}


def shrinking(first: float, cosine: float, n: int) -> dict[str, Any]:
    """Layers whose steps get smaller by themselves, to a quarter of 10 %."""
    steps = [max(0.025, first * 0.8**row) for row in range(n)]
    return {"update_ratio": steps, "grad_cosine": [cosine] * n}


def unmoved(ratio: float, grad_norm: float, n: int) -> dict[str, Any]:
    return {"update_ratio": [ratio] * n, "grad_norm": [grad_norm] * n, "weight_norm": [2.0] * n}


def explodes(ratio: float, *grad_norm: float) -> dict[str, Any]:
    """Layers of usual gradients and updates, and then these."""
    after = [ratio] * len(grad_norm)
    return {"grad_norm": [*STEADY, *grad_norm], "update_ratio": [0.005] * len(STEADY) + after}


def clipped(
    coefficient: list[float],
    ratio: float,
    of_another: float | None = None,
    *,
    is_led: bool = True,
) -> dict[str, Any]:
    """Four layers of which one moves more, or two, led by the gradient or by an optimizer."""
    moved = [ratio, 0.1, ratio, of_another or ratio]
    grads = [10 * one for one in moved] if is_led else [1.0] * 4
    return {
        "update_ratio": [moved] * len(coefficient),
        "clip_coefficient": [[one] * 4 for one in coefficient],
        "weight_norm": [[1.0] * 4] * len(coefficient),
        "grad_norm": [grads] * len(coefficient),
    }


def stuck(
    ratio: float,
    start: float,
    now: float,
    n: int,
    *,
    grad: float = 1.1e-3,
    first: float | None = None,
    of_another: float | None = None,
    warmup: bool = False,
) -> dict[str, Any]:
    """Four layers that hardly move, of which one is frozen; a loss, and that after 20 rows."""
    growing = [ratio * (row + 1) / n if warmup else ratio for row in range(n)]
    growing[0] = first or growing[0]
    return {
        "update_ratio": [[one, one, of_another or one, np.nan] for one in growing],
        "loss": [[start] * 4] * 20 + [[now] * 4] * (n - 20),
        "grad_norm": [[grad] * 3 + [np.nan]] * n,
        "weight_norm": [[1.0] * 4] * n,
    }


def adversaries(loss_d: list[float], loss_g: float) -> dict[str, Any]:
    return {"loss_d": loss_d, "loss_g": [loss_g] * len(loss_d)}


def behind(ratio: float, *loss_d: float, of_others: float | None = None) -> dict[str, Any]:
    """A generator of two layers, whose loss rises by a half and more after the first row."""
    n = len(loss_d)
    loss_g = [0.7] + [1.06] * (n - 1)
    losses = {"loss_d": loss_d, "loss_g": loss_g}
    return {"update_ratio": [[ratio, of_others or ratio]] * n} | {
        k: [[x] * 2 for x in v] for k, v in losses.items()
    }


def first_outputs(*deviations: float, bits: float = 100.0) -> dict[str, Any]:
    """Return one row of deviations, with the last layer so many bits from the largest number."""
    headroom = [100.0] * (len(deviations) - 1) + [bits]
    return {"output_std": [[*deviations]], "range_headroom_bits": [headroom]}


def falling(start: float, n: int) -> list[float]:
    """Return the losses of updates that are all made from one batch."""
    return [start * (0.5 + 0.5 * 0.95**row) for row in range(n)]


def of_episodes(n: int = 60) -> list[float]:
    """What is summed over episodes: a tenth of the usual, or ten times of it, at any time."""
    return [10.0 ** ((3 * i) % 7 / 3 - 1) for i in range(n)]


def deep(slope: float, n_layers: int, n: int) -> dict[str, Any]:
    return {"grad_norm": [[1.0] * n_layers] * n, "grad_depth_slope": [[slope] * n_layers] * n}


def early(ratios: list[float], *losses: float) -> dict[str, Any]:
    """Of three layers one changes by far less than the others."""
    table = [[0.001, ratio, ratio, ratio] for ratio in ratios]
    return {"update_ratio": table, "loss": [[loss] * 4 for loss in (2.0, *losses)]}


def lost(rms: float, n: int, largest: float = 1.0, off: float = 0.0) -> dict[str, Any]:
    """A layer without a gradient, and another; a share ``off`` of its input is silent."""
    silent = [[0.0, off]] * n
    return {"grad_rms": [[rms, largest]] * n, "silent_input_fraction": silent}


def surprised(rms: float, loss: float) -> dict[str, Any]:
    steady = [[0.7, 0.7, 0.7]] * 12
    return {
        "adam_update_rms": [*steady, [0.7, rms, rms]],
        "loss": [[1.0] * 3] * 12 + [[loss] * 3],
    }
