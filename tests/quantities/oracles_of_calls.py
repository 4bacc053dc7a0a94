"""What quantities of a module's calls should be, in float64, from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tests.quantities.layers import Array, Seen

Oracle: TypeAlias = Callable[[list[Seen]], Any]
"""Of all steps; None where there is nothing to tell."""

LARGEST, TINY = (float(getattr(np.finfo(np.float32), name)) for name in ("max", "tiny"))
LEVELS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def size(values: Array) -> float:
    return float(np.sqrt(np.sum(values**2)))


def largest(values: Array) -> float:
    return float(np.abs(values).max())


def counts(values: Array) -> list[float]:
    """In bins of powers of four."""
    edges = [0.0, *(2.0 ** (2 * k - 45) for k in range(1, 31)), math.inf]
    below, _ = np.histogram(-values[values < 0], edges)
    above, _ = np.histogram(values[values > 0], edges)
    return [*below[::-1], (values == 0).sum(), *above, 0]


def equal_bins(values: Array) -> list[float]:
    """In 64 equal bins up to the power of two above all, and their width."""
    width = 2.0 ** (math.floor(math.log2(largest(values))) - 4)
    found, _ = np.histogram(values, np.arange(-32, 33) * width)
    return [*found, 0, width]


def eigenvalues(rows: Array) -> Array:
    """Of the covariance, descending, by a singular value decomposition."""
    singular = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    return np.asarray(np.pad(singular**2 / (len(rows) - 1), (0, rows.shape[1] - len(singular))))


def condition(rows: Array, percent: int) -> float:
    found = eigenvalues(rows)
    return float(found[0] / (found[min(len(found) * percent // 100, len(found) - 1)] + 1e-7))


def top(rows: Array, percent: int) -> Array:
    return eigenvalues(rows)[: math.ceil(rows.shape[1] * percent / 100)][::-1]


def entropy_rank(rows: Array) -> float:
    s = np.linalg.svd(rows, compute_uv=False)
    p = s / s.sum() + 1e-7
    return float(np.prod(p**-p))


def in_fp8(values: Array, digits: int, least: int, most: float) -> tuple[Array, Array]:
    """Scaled numbers and the nearest ones of so many binary digits, from the least exponent on."""
    scaled = values / np.abs(values).max() * most
    with np.errstate(divide="ignore"):
        exponents = np.maximum(np.floor(np.log2(np.abs(scaled))), least)
    step = 2.0 ** (exponents - digits)
    return scaled, np.round(scaled / step) * step  # halves to the even one


def fp8_error(values: Array, *kind: Any) -> float:
    scaled, rounded = in_fp8(values, *kind)
    return size(rounded - scaled) / size(scaled)


def fp8_lost(values: Array, *kind: Any) -> float:
    scaled, rounded = in_fp8(values, *kind)
    return float(((scaled != 0) & (rounded == 0)).mean())


E4M3, E5M2 = (3, -6, 448.0), (2, -14, 57344.0)


def silent(rows: Array) -> float | None:
    """Of data, as all of these layers are given."""
    share = 1 - (rows != 0).any(0).mean()
    return float(share) if len(rows) >= 32 and share in (0, 1) else None


def saturation(rows: Array) -> float:
    shares = np.cumsum(eigenvalues(rows)) / eigenvalues(rows).sum()
    return float((np.argmax(shares >= 0.99) + 1) / rows.shape[1])


def shift(before: Array, now: Array) -> float:
    levels = (np.arange(256) + 0.5) / 256
    return float(np.abs(np.quantile(now, levels) - np.quantile(before, levels)).mean())


def divided(one: float, other: float) -> float:
    return one / other if other else math.inf


def load(rows: Array) -> float:
    found = shares(rows)
    return float(-np.log(np.prod(found**found)) / np.log(rows.shape[1]))


def shares(rows: Array) -> Array:
    return np.bincount(rows.argmax(1), minlength=rows.shape[1]) / len(rows)


def of_x(function: Callable[[Array], Any]) -> Oracle:
    return lambda h: None if h[-1].reads_words else function(h[-1].rows(h[-1].x))


def of_y(function: Callable[[Array], Any]) -> Oracle:
    return lambda h: function(h[-1].rows(h[-1].y))


def of_gy(function: Callable[[Array], Any]) -> Oracle:
    return lambda h: function(h[-1].rows(h[-1].gy))


def tid(of_step: Callable[[Array], Array], of_running: Callable[[Any], Array]) -> Oracle:
    def discrepancy(h: list[Seen]) -> float | None:
        seen = h[-1]
        if seen.running is None:
            return None
        distance = np.linalg.norm(of_step(seen.rows(seen.x)) - of_running(seen.running))
        return float(distance / (np.linalg.norm(np.sqrt(seen.running[1])) + 1e-8))

    return discrepancy


OF_CALLS: dict[str, Oracle] = {
    "input_mean": lambda h: h[-1].x.mean(),
    "input_std": lambda h: h[-1].x.std(ddof=1),
    "input_rms": lambda h: rms(h[-1].x),
    "input_norm": lambda h: size(h[-1].x),
    "input_abs_max": lambda h: largest(h[-1].x),
    "output_mean": lambda h: h[-1].every_y.mean(),
    "output_std": lambda h: h[-1].every_y.std(ddof=1),
    "output_rms": lambda h: rms(h[-1].every_y),
    "output_norm": lambda h: size(h[-1].every_y),
    "output_abs_max": lambda h: largest(h[-1].every_y),
    "output_grad_rms": lambda h: rms(h[-1].gy),
    "output_grad_norm": lambda h: size(h[-1].gy),
    "output_grad_abs_max": lambda h: largest(h[-1].gy),
    "input_grad_norm": lambda h: None if h[-1].gx is None else size(h[-1].gx),
    "zero_fraction": lambda h: (h[-1].every_y == 0).mean(),
    "nonfinite_fraction": lambda h: 0.0,
    "input_nonfinite_fraction": lambda h: 0.0,
    "output_grad_nonfinite_fraction": lambda h: 0.0,
    "saturated_fraction": lambda h: (np.abs(h[-1].y) > 0.97).mean() if h[-1].bounded else None,
    "dead_fraction": of_y(lambda y: (y.max(0) <= 0).mean()),
    "linear_dead_fraction": of_y(lambda y: (y.max(0) <= -2).mean()),
    "dormant_fraction": of_y(lambda y: (np.abs(y).mean(0) <= 0.025 * np.abs(y).mean()).mean()),
    "silent_input_fraction": of_x(silent),
    "range_headroom_bits": lambda h: math.log2(LARGEST / largest(h[-1].y)),
    "output_grad_headroom_bits": lambda h: math.log2(LARGEST / largest(h[-1].gy)),
    "fp8_error": lambda h: fp8_error(h[-1].y, *E4M3),
    "fp8_underflow_fraction": lambda h: fp8_lost(h[-1].y, *E4M3),
    "output_grad_fp8_error": lambda h: fp8_error(h[-1].gy, *E5M2),
    "output_grad_fp8_underflow_fraction": lambda h: fp8_lost(h[-1].gy, *E5M2),
    "output_dtype": lambda h: 24.0,
    "underflow_fraction": lambda h: ((h[-1].y != 0) & (np.abs(h[-1].y) < TINY)).mean(),
    "output_grad_underflow_fraction": lambda h: (
        (h[-1].gy != 0) & (np.abs(h[-1].gy) < 2.0**-24)
    ).mean(),
    "input_histogram": lambda h: equal_bins(h[-1].x.ravel()),
    "input_log_histogram": lambda h: counts(h[-1].x.ravel()),
    "output_histogram": lambda h: equal_bins(h[-1].every_y),
    "output_log_histogram": lambda h: counts(h[-1].every_y),
    "grad_output_histogram": lambda h: equal_bins(h[-1].gy.ravel()),
    "grad_output_log_histogram": lambda h: counts(h[-1].gy.ravel()),
    "input_quantiles": lambda h: np.quantile(h[-1].x, LEVELS),
    "output_quantiles": lambda h: np.quantile(h[-1].every_y, LEVELS),
    "n_sampled": lambda h: h[-1].every_y.size,
    "distribution_shift": lambda h: shift(h[-2].every_y, h[-1].every_y),
    "input_channel_mean": of_x(lambda x: x.mean(0)),
    "input_channel_std": of_x(lambda x: x.std(0, ddof=1)),
    "input_channel_rms": of_x(lambda x: np.sqrt((x**2).mean(0))),
    "input_channel_norm": of_x(lambda x: np.sqrt((x**2).sum(0))),
    "input_channel_abs_max": of_x(lambda x: np.abs(x).max(0)),
    "output_channel_mean": of_y(lambda y: y.mean(0)),
    "output_channel_std": of_y(lambda y: y.std(0, ddof=1)),
    "output_channel_rms": of_y(lambda y: np.sqrt((y**2).mean(0))),
    "output_channel_norm": of_y(lambda y: np.sqrt((y**2).sum(0))),
    "output_channel_abs_max": of_y(lambda y: np.abs(y).max(0)),
    "input_cov_eigs": of_x(eigenvalues),
    "input_cov_max_eig": of_x(lambda x: eigenvalues(x)[0]),
    "input_cov_stable_rank": of_x(lambda x: eigenvalues(x).sum() / eigenvalues(x)[0]),
    "input_cov_condition": of_x(lambda x: eigenvalues(x)[0] / eigenvalues(x)[-1]),
    "input_cov_condition_20": of_x(lambda x: condition(x, 20)),
    "input_cov_condition_50": of_x(lambda x: condition(x, 50)),
    "input_cov_condition_80": of_x(lambda x: condition(x, 80)),
    "input_cov_condition_100": of_x(lambda x: condition(x, 100)),
    "input_cov_top_eigs_20": of_x(lambda x: top(x, 20)),
    "input_cov_top_eigs_50": of_x(lambda x: top(x, 50)),
    "input_cov_top_eigs_80": of_x(lambda x: top(x, 80)),
    "output_cov_eigs": of_y(eigenvalues),
    "output_grad_cov_eigs": of_gy(eigenvalues),
    "output_grad_cov_max_eig": of_gy(lambda gy: eigenvalues(gy)[0]),
    "effective_rank": of_y(entropy_rank),
    "effective_rank_share": of_y(lambda y: entropy_rank(y) / min(y.shape)),
    "sample_effective_rank": lambda h: entropy_rank(h[-1].y.reshape(len(h[-1].y), -1)),
    "n_output_rows": of_y(len),
    "participation_ratio": of_y(lambda y: eigenvalues(y).sum() ** 2 / (eigenvalues(y) ** 2).sum()),
    "saturation": of_y(saturation),
    "massive_ratio": lambda h: divided(largest(h[-1].y), float(np.median(np.abs(h[-1].y)))),
    "channel_kurtosis": of_y(lambda y: ((y**2).mean(0) ** 2).mean() / (y**2).mean() ** 2),
    "residual_ratio": lambda h: size(h[-1].y) / size(h[-1].x),
    "residual_change": lambda h: (
        size(h[-1].y - h[-1].x) / size(h[-1].x) if h[-1].y.shape == h[-1].x.shape else None
    ),
    "router_load_entropy": of_y(load),
    "router_load": of_y(shares),
    "router_max_violation": of_y(lambda y: shares(y).max() / shares(y).mean() - 1),
    "dead_expert_fraction": of_y(lambda y: (shares(y) == 0).mean()),
    "bn_mean_tid": tid(lambda x: x.mean(0), lambda running: running[0]),
    "bn_var_tid": tid(lambda x: x.std(0, ddof=1), lambda running: np.sqrt(running[1])),
}
