"""What quantities of a module's parameters should be, in float64, from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.quantities.layers import Array, Seen, flat
from tests.quantities.oracles_of_calls import Oracle, counts, equal_bins, largest, rms, size


def matrices(weights: list[Array]) -> list[Array]:
    return [w.reshape(len(w), -1) for w in weights]


def singular(seen: Seen) -> Array:
    """Of all weights side by side, descending."""
    return singular_values(seen.w)


def singular_values(weights: list[Array]) -> Array:
    values = [np.linalg.svd(matrix, compute_uv=False) for matrix in matrices(weights)]
    return np.sort(np.concatenate(values))[::-1]


def evenness(values: Array) -> float:
    """Ratio of the squared mean to the mean square, of squares."""
    return float((values**2).mean() ** 2 / (values**4).mean())


def regular(values: Array) -> Array:
    """MindInsight's histogram, by numpy's."""
    n = values.size
    bins = 2 if n <= 5 else 3 if n <= 10 else n // 10 + 1 if n <= 880 else 90
    found, _ = np.histogram(values, bins)
    return np.pad(found.astype(np.float64), (0, 90 - bins), constant_values=math.nan)


def alpha(values: Array) -> float | None:
    """Clauset's fit, candidate by candidate, as the paper writes it."""
    tail = sorted(value for value in values if value > 1e-12 * max(values))
    if len(tail) < 10:
        return None
    best = (math.inf, math.nan)
    for start in tail[:-1]:
        above = [value for value in tail if value >= start]
        if above[-1] == start:
            continue
        exponent = 1 + len(above) / sum(math.log(value / start) for value in above)
        distance = max(
            abs(i / len(above) - (1 - (start / value) ** (exponent - 1)))
            for i, value in enumerate(above)
        )
        best = min(best, (distance, exponent))
    return best[1]


def cosine(one: Array, other: Array) -> float:
    """NaN of a vector of zeros."""
    sizes = np.linalg.norm(one) * np.linalg.norm(other)
    return float(one @ other / sizes) if sizes else math.nan


def of(function: Callable[[Seen], Any]) -> Oracle:
    """Of a layer that has parameters; of one that has none there is nothing."""
    return lambda h: function(h[-1]) if h[-1].g else None


def of_two(function: Callable[[Seen, Seen], Any], first: int) -> Oracle:
    return lambda h: function(h[first], h[-1]) if h[-1].g else None


OF_PARAMETERS: dict[str, Oracle] = {
    "weight_norm": of(lambda s: size(flat(s.w))),
    "weight_rms": of(lambda s: rms(flat(s.w))),
    "weight_abs_max": of(lambda s: largest(flat(s.w))),
    "weight_min": of(lambda s: flat(s.w).min()),
    "weight_max": of(lambda s: flat(s.w).max()),
    "weight_sum": of(lambda s: flat(s.w).sum()),
    "weight_histogram": of(lambda s: equal_bins(flat(s.w))),
    "weight_log_histogram": of(lambda s: counts(flat(s.w))),
    "param_histogram": of(lambda s: regular(s.w[-1])),
    "weight_nonfinite_fraction": of(lambda s: 0.0),
    "n_weight_nan": of(lambda s: 0.0),
    "n_weight_posinf": of(lambda s: 0.0),
    "n_weight_neginf": of(lambda s: 0.0),
    "weight_singular_values": of(singular),
    "spectral_norm": of(lambda s: singular(s)[0]),
    "weight_stable_rank": of(lambda s: (singular(s) ** 2).sum() / singular(s)[0] ** 2),
    "norm_gain_rms": of(lambda s: rms(s.w[0]) if s.running is not None else None),
    "weight_alpha": of(lambda s: alpha(singular(s) ** 2)),
    "grad_norm": of(lambda s: size(flat(s.g))),
    "grad_raw_norm": of(lambda s: size(flat(s.g))),
    "grad_rms": of(lambda s: rms(flat(s.g))),
    "grad_abs_max": of(lambda s: largest(flat(s.g))),
    "grad_histogram": of(lambda s: equal_bins(flat(s.g))),
    "grad_log_histogram": of(lambda s: counts(flat(s.g))),
    "grad_zero_fraction": of(lambda s: (flat(s.g) == 0).mean()),
    "grad_nonfinite_fraction": of(lambda s: 0.0),
    "grad_underflow_fraction": of(
        lambda s: ((flat(s.g) != 0) & (np.abs(flat(s.g)) < 2.0**-25)).mean()
    ),
    "weight_grad_norm": of(lambda s: size(flat(s.gw))),
    "update_norm": of(lambda s: size(flat(s.dw))),
    "update_rms": of(lambda s: rms(flat(s.dw))),
    "update_orthogonality": of(lambda s: evenness(singular_values(s.dw))),
    "update_ratio": of(lambda s: size(flat(s.dw)) / size(flat(s.w))),
    "log_step_size": of(lambda s: math.log(size(flat(s.d)))),
    "distance_from_init": of_two(lambda a, b: size(flat(b.w) - flat(a.w)), 0),
    "sign_flip_count": of_two(lambda a, b: (flat(a.w) * flat(b.w) < 0).sum(), -2),
}
"""Those that are of all weights of a module together."""

OF_ONE: dict[str, Callable[[Seen, Seen, int], float]] = {
    "layer_rotation": lambda a, b, i: 1 - cosine(a.w[i].ravel(), b.w[i].ravel()),
    "sign_flips": lambda a, b, i: float((a.w[i] * b.w[i] < 0).mean()),
    "grad_cosine": lambda a, b, i: cosine(a.gw[i].ravel(), b.gw[i].ravel()),
}
"""Those of one weight, of whose values a module with several has the mean."""


def mean_of(name: str) -> Oracle:
    def mean(h: list[Seen]) -> float | None:
        first = h[0] if name == "layer_rotation" else h[-2]
        return float(np.mean([OF_ONE[name](first, h[-1], i) for i in range(len(h[-1].w))]))

    return lambda h: mean(h) if h[-1].g else None


OF_PARAMETERS.update({name: mean_of(name) for name in OF_ONE})


def adam(h: list[Seen], i: int) -> tuple[Array, Array]:
    """Adam's moments of one weight by their recursion, without their bias."""
    m, v = np.zeros_like(h[0].gw[i]), np.zeros_like(h[0].gw[i])
    for s in h:
        m = 0.9 * m + 0.1 * s.gw[i]
        v = 0.999 * v + 0.001 * s.gw[i] ** 2
    return m / (1 - 0.9 ** len(h)), v / (1 - 0.999 ** len(h))


def surprise(h: list[Seen], i: int) -> float:
    return rms(h[-1].gw[i] / np.sqrt(np.maximum(adam(h, i)[1], 1e-16)))


def agreement(h: list[Seen], i: int) -> float:
    m, v = adam(h, i)
    return size(m) / float(np.sqrt(v.sum()))


def rates(h: list[Seen], i: int) -> Array:
    levels = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
    return np.quantile(0.05 / (np.sqrt(adam(h, i)[1]) + 1e-8), levels)


BY_ADAM: dict[str, Callable[[list[Seen], int], Any]] = {
    "adam_update_rms": surprise,
    "moment_ratio": agreement,
    "effective_lr_quantiles": rates,
    "grad_below_eps_fraction": lambda h, i: (np.abs(h[-1].gw[i]) < 1e-8).mean(),
    "update_cosine": lambda h, i: -cosine(h[-1].dw[i].ravel(), h[-1].gw[i].ravel()),
}
"""Those of one weight and what the optimizer makes of its gradients; of several the mean."""


def mean_by_adam(name: str) -> Oracle:
    def mean(h: list[Seen]) -> Any:
        return np.mean([BY_ADAM[name](h, i) for i in range(len(h[-1].w))], axis=0)

    return lambda h: mean(h) if h[-1].g else None


OF_PARAMETERS.update({name: mean_by_adam(name) for name in BY_ADAM})
OF_PARAMETERS.update(
    {"lr": of(lambda s: 0.05), "weight_decay": of(lambda s: 0.0), "momentum": of(lambda s: 0.9)}
)
