"""Every built-in rule passes the suite at its thresholds; the suite finds faults in others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from notebook_probe.alerts import RULES, Rule, find_alerts
from notebook_probe.testing import RuleSuite
from notebook_probe.testing.rows import StreamInMemory, filled

STEADY = [1.0] * 12
GROWING = [15.0] * 50 + [18.1] * 50


def rates(ratio: float, other: float, n: int, name: str = "grad_cosine") -> dict[str, Any]:
    return {"update_ratio": [ratio] * n, name: [other] * n}


FIRES: dict[str, list[dict[str, Any]]] = {
    "nonfinite_output": [{"nonfinite_fraction": [[0.0, 0.0], [0.0, 1e-6]]}],
    "nonfinite_gradient": [{"grad_norm": [1.0, np.inf]}, {"grad_norm": [1.0, np.nan]}],
    "nonfinite_loss": [{"loss": [1.0, -np.inf]}, {"loss": [np.nan]}],
    "overflow_near": [{"range_headroom_bits": [1.99]}],
    "exploding_gradient": [{"grad_norm": [*STEADY, 10.1, 10.1]}],
    "vanishing_gradient": [{"grad_rms": [9.9e-9] * 3}],
    "vanishing_with_depth": [{"grad_depth_slope": [-0.301] * 3}],
    "always_clipped": [{"clip_coefficient": [0.99] * 91 + [1.0] * 9}],
    "dead_units": [{"dead_fraction": [0.501] * 201}],
    "rank_collapse": [{"effective_rank_share": [0.0499] * 3}],
    "batchnorm_mismatch": [{"bn_mean_tid": [0.501] * 60}],
    "attention_collapse": [{"attn_entropy_share": [0.0999] * 201}],
    "attention_logit_large": [{"attn_max_logit": [50.1]}],
    "attention_logit_growing": [{"attn_max_logit": [*GROWING, *[21.8] * 50]}],
    "lr_high": [rates(1.01e-2, -0.01, 20)],
    "lr_low": [rates(0.99e-6, 1e-3, 10, "grad_norm")],
    "diverging_loss": [{"loss": [2.0, 2.0, 20.1, 20.2]}, {"loss": [2.3, 17.2, 5e4, 1e7]}],
    "loss_spike": [{"loss_spike_score": [6.01]}],
    "adam_spike_ahead": [{"adam_update_rms": [0.7] * 12 + [2.31]}],
    "loader_bound": [{"data_wait_share": [0.301] * 50}],
}

SILENT: dict[str, list[dict[str, Any]]] = {
    "nonfinite_output": [{"nonfinite_fraction": [0.0] * 3}],
    "nonfinite_gradient": [{"grad_norm": [0.0, 3e38]}],
    "nonfinite_loss": [{"loss": [0.0, -3e38]}],
    "overflow_near": [{"range_headroom_bits": [2.0, 100.0]}],
    "exploding_gradient": [
        {"grad_norm": [*STEADY, 10.1, 1.0, 10.1, 1.0]},
        {"grad_norm": [*STEADY, 9.9, 9.9]},
        {"grad_norm": [1.0] * 9 + [10.1, 10.1]},
        {"grad_norm": [10.1] * 50 + [1.0] * 24 + [10.1] * 2 + [100.9] * 2},
    ],
    "vanishing_gradient": [{"grad_rms": [9e-9, 9e-9, 1.01e-8, 9e-9]}],
    "vanishing_with_depth": [{"grad_depth_slope": [-0.31, -0.31, -0.299, 0.31]}],
    "always_clipped": [
        {"clip_coefficient": [0.99] * 90 + [1.0] * 10},
        {"clip_coefficient": [0.5] * 99},
    ],
    "dead_units": [{"dead_fraction": [0.501] * 200 + [0.5]}],
    "rank_collapse": [{"effective_rank_share": [0.049, 0.049, 0.051, 0.049]}],
    "batchnorm_mismatch": [
        {"bn_mean_tid": [0.499] * 70},
        {"bn_mean_tid": [0.501] * 59 + [0.0] * 3},
    ],
    "attention_collapse": [{"attn_entropy_share": [0.099] * 200 + [0.101]}],
    "attention_logit_large": [{"attn_max_logit": [50.0, -60.0]}],
    "attention_logit_growing": [
        {"attn_max_logit": [*GROWING, *[21.6] * 50]},
        {"attn_max_logit": [*[15.0] * 50, *[17.9] * 50, *[21.8] * 50]},
        {"attn_max_logit": [*GROWING, *[21.8] * 49]},
        {"attn_max_logit": [*[10.0] * 50, *[13.0] * 50, *[19.9] * 50]},
    ],
    "lr_high": [rates(0.99e-2, -0.01, 25), rates(1.1e-2, 0.01, 25), rates(1.1e-2, -0.01, 19)],
    "lr_low": [
        rates(0.99e-6, 0.0, 12, "grad_norm"),
        rates(1.01e-6, 1.0, 12, "grad_norm"),
        rates(0.99e-6, 1.0, 9, "grad_norm"),
    ],
    "diverging_loss": [
        {"loss": [2.0, 2.0, 19.9, 19.95]},
        {"loss": [2.0, 2.0, 20.2, 20.1, 20.2]},
        {"loss": [2.0, 40.0, 50.0, 2.0, 60.0]},
        {"loss": [-2.0, -2.0, -50.0, -90.0]},
        {"loss": [30.0, *[0.01] * 30, 0.2, 0.3, 0.4]},
    ],
    "loss_spike": [{"loss_spike_score": [6.0, -9.0]}],
    "adam_spike_ahead": [
        {"adam_update_rms": [0.7] * 12 + [2.29]},
        {"adam_update_rms": [0.8] * 12 + [2.35]},
    ],
    "loader_bound": [{"data_wait_share": [0.299] * 60}, {"data_wait_share": [0.9] * 49}],
}


class TestBuiltIn(RuleSuite):
    rules = tuple(FIRES)
    fires = FIRES
    silent = SILENT


def test_there_are_series_for_every_built_in_rule_that_is_about_series() -> None:
    ours = "notebook_probe.alerts.builtin."
    built_in = {one.name for one in RULES.values() if one.condition.__module__.startswith(ours)}
    assert built_in - {"stale_probe"} == FIRES.keys() == SILENT.keys()


WORKED_OUT = {
    "nonfinite_output": [": 1"],
    "exploding_gradient": ["is 10.1,", " 10 times"],
    "vanishing_with_depth": [" 0.5 times"],
    "always_clipped": ["91%"],
    "batchnorm_mismatch": [" 0.50 "],
    "lr_high": [" 1.01% ", "(cosine -0.01)", " 0.1 times as large"],
    "loader_bound": ["30%"],
}


@pytest.mark.parametrize("name", WORKED_OUT)
def test_a_sentence_has_the_numbers_that_were_worked_out_for_it(name: str) -> None:
    [tables] = FIRES[name]
    values = filled(tables)
    n_rows, n_modules = next(iter(values.values())).shape
    rows = StreamInMemory(values, tuple(f"layer{i}" for i in range(n_modules)), n_rows)
    [alert] = find_alerts(rows.source, RULES[name])
    for number in WORKED_OUT[name]:
        assert number in alert.text


def suite(rule: Rule, fires: Any = ({"loss": [9.0] * 5},), silent: Any = ({"loss": [0.0]},)) -> Any:
    series = {"fires": {rule.name: fires}, "silent": {rule.name: silent}}
    return type("Given", (RuleSuite,), {"rules": (rule,), **series})()


def made(
    condition: Callable[..., Any], says: str = "the loss is {loss:.1f}", **most: float
) -> Rule:
    """A rule that no run follows."""
    given = tuple(inspect.signature(condition).parameters)
    quantities = tuple(name for name in given if name not in most)
    return Rule(condition.__name__, condition, quantities, MappingProxyType(most), says)


def plain(loss: Any, most: float) -> Any:
    return loss > most


def far_back(loss: Any) -> Any:
    return loss > 0.5 * np.where(np.isfinite(loss), loss, 0).max()


def picky(loss: Any) -> Any:
    if not np.isfinite(loss).all():
        raise ValueError("not finite")
    return loss > 3


def vague(loss: Any) -> Any:
    return loss * np.nan


def unheard(unheard_of: Any) -> Any:
    return unheard_of > 3


PLAIN = made(plain, most=3.0)


def test_a_rule_of_ones_own_passes() -> None:
    passing = suite(PLAIN)
    for name in dir(passing):
        if name.startswith("test_"):
            getattr(passing, name)()


@pytest.mark.parametrize(
    ("rule", "test", "said"),
    [
        (made(unheard, "{unheard_of}"), "it_looks_at_series_that_there_can_be", "is unheard_of"),
        (made(picky), "no_number_makes_it_raise", "ValueError: not finite"),
        (made(vague), "no_number_makes_it_raise", "returned float64; a mask of bools is expected"),
        (made(far_back), "it_says_the_same_however_rows_come", "beyond its window of 0"),
        (made(plain, "too high", most=3), "it_fires_where_something_is_wrong", "says no number"),
        (PLAIN.but(most=99), "it_fires_where_something_is_wrong", "says nothing of loss = "),
        (PLAIN.but(most=-1), "it_is_silent_where_nothing_is_wrong", r"the loss is 0\.0"),
    ],
)
def test_a_fault_is_found(rule: Rule, test: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        getattr(suite(rule), f"test_{test}")()


def test_a_rule_without_series_of_its_own_says_so() -> None:
    with pytest.raises(AssertionError, match="Given has no series for plain"):
        suite(PLAIN, fires=()).test_it_fires_where_something_is_wrong()
