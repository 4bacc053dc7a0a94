"""Every built-in rule passes the suite at its thresholds; the suite finds faults in others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from notebook_probe.alerts import RULES, Rule, find_alerts
from notebook_probe.alerts.builtin.facts import FACTS
from notebook_probe.record.format.loss_names import NAMED_SERIES
from notebook_probe.testing import RuleSuite
from notebook_probe.testing.rows import StreamInMemory, filled
from tests.alerts.series import (
    STEADY,
    adversaries,
    behind,
    clipped,
    deep,
    early,
    explodes,
    falling,
    first_outputs,
    heads,
    learned,
    lost,
    of_episodes,
    ranks,
    rates,
    rising,
    running,
    shrinking,
    stuck,
    surprised,
    unmoved,
)

GROWING = [15.0] * 50 + [18.1] * 50

FIRES: dict[str, list[dict[str, Any]]] = {
    "weights_shrink": [{"weight_norm": [[2.0] * 3] * 10 + [[0.19, 0.19, 2.0]] * 3}],
    "every_gradient_zero": [{"grad_norm": [[0.0, 0.0]] * 10, "loss": [[2.0, np.nan]] * 10}],
    "nothing_to_learn": [{"grad_norm": [0.0] * 20, "loss": [0.0] * 20}],
    "updates_skipped": [{"skipped": [1.0] * 40}],
    "passes_cleared": [{"discarded_backwards": [2.0] * 10}],
    "nonfinite_output": [{"nonfinite_fraction": [[0.0, 0.0], [0.0, 1e-6]]}],
    "nonfinite_gradient": [{"grad_norm": [1.0, np.inf]}, {"grad_norm": [1.0, np.nan]}],
    "nonfinite_loss": [{"loss": [1.0, -np.inf]}, {"loss": [np.nan]}],
    "overflow_near": [{"range_headroom_bits": [1.99]}, {"range_headroom_bits": [3.0, 0.02]}],
    "exploding_gradient": [
        explodes(0.151, 10.1, 10.1),
        explodes(0.151, 10.1, 10.1) | {"loss": [1.0] * len(STEADY) + [1.0011, 1.0]},
        {"grad_norm": [3.0, 4.0, 401.0, 1e9], "update_ratio": [0.1, 0.1, 1.01, 9.0]}
        | {"loss": [2.3] * 4},
    ],
    "vanishing_gradient": [lost(9.9e-9, 10), lost(0.0, 10, 1e-6, off=0.7)],
    "faded_gradient": [{"grad_rms": [[1e-6, 1.0]] * 10 + [[9e-9, 1.0]] * 301}],
    "idle_gradient": [lost(0.0, 51)],
    "vanishing_with_depth": [deep(-0.301, 15, 10), deep(-0.81, 6, 10)],
    "always_clipped": [clipped([0.19] * 37 + [1.0] * 3, 4.9e-4)],
    "gradient_too_long": [{"clip_coefficient": [0.9e-8] * 10}],
    "dead_units": [{"dead_fraction": [0.801] * 41}],
    "silent_inputs": [
        {"silent_input_fraction": [0.601] * 3, "grad_rms": [0.1] * 3},
        {"silent_input_fraction": [0.1] * 9 + [0.981] * 3, "grad_rms": [0.1] * 12},
        {"silent_input_fraction": [[0.0, 1.0]] * 3, "grad_rms": [[0.0, 0.1]] * 3},  # dead before it
        {"silent_input_fraction": [[1.0, 0.0]] * 3, "grad_rms": [[0.1] * 2] * 3},  # data are lost
        {
            "silent_input_fraction": [[0.0, 0.0]] * 12 + [[0.0, 1.0]] * 3,  # of two kinds, one
            "grad_rms": [[0.1] * 2] * 15,
        },
    ],
    "blank_batch": [
        {"silent_input_fraction": [[0.2, 0.1], [1.0, 0.1]]},
        {"silent_input_fraction": [[np.nan, 0.1], [1.0, 0.1]]},  # of data with empty channels
    ],
    "rank_collapse": [
        ranks(61, (20.0, 64), (1.37, 64), (1.1, 30)),
        ranks(61, (9.0, 64), (1.0, 10)),
        ranks(160, (20.0, 64), (1.0, 64)) | {"loss": [[3.0 * 0.8**row] * 2 for row in range(160)]},
    ],
    "batchnorm_mismatch": [
        running([0.501] * 66, [0.0] * 66),
        running([0.501] * 66, [0.0] * 66, calls=2.0),  # accumulated
        running([0.1] * 25, [0.78 - 0.002 * row for row in range(25)]),
        running([0.1] * 25, [9.0 - 0.04 * row for row in range(25)]),
    ],
    "attention_collapse": [
        heads("attn_entropy_share", [0.0999] * 41),
        heads("attn_entropy_share", [0.0] * 60) | {"loss": [2.0] * 10 + [0.21] * 50},
        heads("attn_entropy_share", [0.0] * 60) | {"loss": [-2.0] * 10 + [-3.0] * 50},
    ],
    "attention_logit_large": [heads("attn_max_logit", [50.1])],
    "attention_logit_growing": [heads("attn_max_logit", [*GROWING, *[21.8] * 50])],
    "early_divergence": [
        early([0.11] * 4, 2.1, 2.1, 2.1),
        early([0.11, 0.0, 0.11, 0.0, 0.0, 0.11, 0.0, 0.11], 1.0, 2.1, 1.0, 1.0, 2.1, 1.0, 2.1),
        early([0.0] * 96 + [0.11] * 4, *[2.1] * 99),
    ],
    "lr_high": [rates(0.101, 0.29, 20), shrinking(2.0, 0.2, 20)],
    "hardly_trains": [
        stuck(9.9e-5, 2.0, 1.97, 44),
        stuck(9.9e-5, -2.0, -2.03, 44),
        stuck(9.9e-5, 2.0, 20.0, 44),
    ],
    "large_outputs": [
        first_outputs(10.1, 10.1, 1.0, 10.1),
        first_outputs(1.0, 1.0, 10.1e3),
        first_outputs(2e9, 3e8, 1e8),  # of inputs such as times of a clock
        first_outputs(1.0, 1.0, 1.8e4, bits=1.86),  # of a float16, whose largest is 65504
    ],
    "lr_low": [
        unmoved(0.99e-6, 2.1e-3, 10),
        {  # a group with a rate of its own
            "update_ratio": [[1e-7, 1e-3, 1e-3]] * 50,
            "grad_norm": [[1.0] * 3] * 50,
            "weight_norm": [[8.0] * 3] * 50,
        },
        {
            "update_ratio": [[1e-3] * 2] * 300 + [[0.0] * 2] * 50,
            "grad_norm": [[1.0] * 2] * 350,
            "weight_norm": [[2.0] * 2] * 350,
        },
    ],
    "diverging_loss": [{"loss": [2.0, 2.0, 20.1, 20.2]}, {"loss": [2.3, 17.2, 5e4, 1e7]}],
    "loss_spike": [
        {"loss": [1.0, 1.2, 1.0] * 34 + [1.51, 1.21]},
        {"loss": [1.0, 1.2, 1.0] * 7 + [2.2, 1.21]},  # of fewer rows, farther
        {"loss": [2.0] * 10 + [0.1, 0.12] * 60 + [0.31, 0.13]},  # a tenth of what was learned
        {"loss": [-1.0] * 10 + [-3.0, -2.9] * 60 + [-2.0, -2.8]},
        {"loss": [2.0] * 10 + [0.1, 0.12] * 60 + [2.1, 0.1]},  # of broken data
        {"loss": [*falling(0.3, 60), 2.0, 1.5]},  # an update did it: the next one changes much
        {"loss": [*falling(0.3, 60), 2.0, 2.0]},  # or nothing
    ],
    "adam_spike_ahead": [surprised(5.01, 1.01)],
    "one_sided_gan": [
        adversaries([1.4, *[0.049] * 20], 3.0),
        adversaries([0.0] * 20, 1.1),
        adversaries([1.4, *[0.049] * 20], -0.03),  # the log of how surely it was found out
    ],
    "clips_too_often": [{"clip_fraction": [0.51] * 10}],
    "rollouts_differ": [{"logp_gap": [0.11] * 5}, {"logp_gap": [0.01] * 9 + [0.5]}],
    "groups_without_signal": [
        {"reward": [0.2] * 11, "idle_group_share": [0.91] * 11},
        {
            "reward": [0.3] * 10 + [0.9, 0.2] + [0.25] * 20,
            "idle_group_share": [0.0] * 12 + [1.0] * 20,
        },
    ],
    "generator_behind": [behind(4.9e-4, 1.4, *[0.69] * 3)],
    "loader_bound": [{"data_wait_share": [0.301] * 50}],
}

SILENT: dict[str, list[dict[str, Any]]] = {
    "weights_shrink": [
        {"weight_norm": [[2.0] * 3] * 10 + [[0.21, 0.19, 0.21]] * 9},
        {"weight_norm": [[2.0] * 3] * 10 + [[0.19, 2.0, 2.0]] * 9},
        {"weight_norm": [0.0] * 30},
    ],
    "every_gradient_zero": [
        {"grad_norm": [[0.0, 0.0]] * 9, "loss": [[2.0, np.nan]] * 9},
        {"grad_norm": [[0.0, 1e-30]] * 20, "loss": [[2.0, np.nan]] * 20},
        {"grad_norm": [1.0] * 10 + [0.0] * 20, "loss": [1.0] * 10 + [0.0] * 20},  # all is learned
    ],
    "nothing_to_learn": [
        {"grad_norm": [1.0] * 10 + [0.0] * 20, "loss": [1.0] * 10 + [0.0] * 20},
        {"grad_norm": [0.0] * 20, "loss": [1.0] * 20},
    ],
    "passes_cleared": [
        {"discarded_backwards": [1.0] * 60},  # of a GAN
        {"discarded_backwards": ([3.0] * 9 + [0.0]) * 6},
    ],
    "updates_skipped": [{"skipped": [1.0] * 12 + [0.0] * 60}, {"skipped": [1.0, 0.0] * 60}],
    "nonfinite_output": [{"nonfinite_fraction": [0.0] * 3}],
    "nonfinite_gradient": [{"grad_norm": [0.0, 3e38]}],
    "nonfinite_loss": [{"loss": [0.0, -3e38]}],
    "overflow_near": [
        {"range_headroom_bits": [2.0, 100.0]},
        {"range_headroom_bits": [0.0, 0.009]},  # finfo.min as a mask, and with scores of 400
    ],
    "exploding_gradient": [
        explodes(0.151, 10.1, 1.0, 10.1, 1.0),
        explodes(0.151, 9.9, 9.9),
        explodes(0.149, 5e-28, 1e9, 1e9),
        {"grad_norm": [*STEADY, 99.0, 99.0], "update_ratio": [0.09] * 12 + [0.179] * 2},
        {"grad_norm": [1.0] * 9 + [10.1, 10.1], "update_ratio": [0.005] * 9 + [0.2] * 2},
        {"grad_norm": [*of_episodes(), 20, 20], "update_ratio": [0.005] * 60 + [0.2] * 2},
        explodes(0.151, 10.1, 10.1) | {"loss": [1.0] * (len(STEADY) + 1) + [1.0009]},  # an optimum
    ],
    "vanishing_gradient": [
        {"grad_rms": [[9e-9, 1.0]] * 9 + [[1.01e-8, 1.0]] + [[9e-9, 1.0]]},
        lost(9e-9, 20, 8e-5),
        lost(0.0, 40),  # the boxes of a detector, without a positive sample so far
        {"grad_rms": [1e-30] * 20},
        {"grad_rms": [[1e-6, 1.0]] * 10 + [[9e-9, 1.0]] * 400},  # has faded
        {"grad_rms": [[1.1e-7, 1.0]] + [[9e-9, 1.0]] * 80},
        {"grad_rms": [[row * 1e-10, 1.0] for row in range(90)]},  # a gain that began at zero
    ],
    "faded_gradient": [
        {"grad_rms": [[1e-6, 1.0]] * 10 + [[9e-9, 1.0]] * 300},
        {"grad_rms": [[1e-6, 1e-3]] * 10 + [[9e-9, 8e-5]] * 400},
        {"grad_rms": [[9e-8, 1.0]] * 10 + [[9e-9, 1.0]] * 400},  # it never was much larger
    ],
    "idle_gradient": [lost(0.0, 50), lost(1e-30, 90), {"grad_rms": [0.0] * 90}],
    "vanishing_with_depth": [
        deep(-0.31, 14, 9),
        deep(-0.29, 20, 20),
        deep(-0.31, 13, 20),
        deep(-0.44, 4, 20),
        deep(0.31, 20, 20),
    ],
    "always_clipped": [
        clipped([0.19] * 36 + [1.0] * 4, 1e-4),
        clipped([0.1] * 39, 1e-4),
        clipped([0.21] * 99, 1e-4),
        clipped([0.04] * 99, 6e-4),  # an agent whose Adam does not mind
        clipped([0.04] * 99, 1e-4, is_led=False),  # and one whose rate is small
        clipped([0.04] * 99, 1e-4, 1e-2),  # gains of 1 change little, the layers beside them do not
    ],
    "dead_units": [{"dead_fraction": [0.801] * 40 + [0.799]}],
    "gradient_too_long": [{"clip_coefficient": [0.9e-8] * 9 + [1.1e-8] + [0.9e-8] * 9}],
    "silent_inputs": [
        {
            "silent_input_fraction": [0.601, 0.601, 0.599, 0.601, np.nan, 0.98],
            "grad_rms": [0.1] * 6,
        },
        {  # a network prunes itself as it learns
            "silent_input_fraction": [0.4] * 3 + [0.979] * 20,
            "grad_rms": [0.1] * 23,
        },
        {  # a prior that is learned from zeros
            "silent_input_fraction": [[0.0, 1.0]] * 20,
            "grad_rms": [[0.1] * 2] * 20,
        },
    ],
    "blank_batch": [
        {"silent_input_fraction": [1.0] * 20},  # a prior that is learned
        {"silent_input_fraction": [[0.2, 0.1], [0.99, 1.0]]},  # dead units
        {"silent_input_fraction": [[0.2, np.nan], [np.nan, 1.0]]},  # of two inputs the other one
    ],
    "rank_collapse": [
        ranks(61, (20.0, 64), (1.39, 64), (15.0, 64)),
        ranks(60, (9.0, 64), (1.0, 10)),  # an encoder that has not learned yet
        rising([1.0, 1.01, 1.02, 1.04, 1.08, 1.16, 1.3]),
        rising([np.nan, 1.01, 1.02, 1.05, 1.2]),  # an adapter that begins at zero
        ranks(61, (3.1, 64), (3.0, 64), (1.2, 64), (2.5, 10)),  # four inputs bound all that follows
        ranks(61, (20.0, 64), (1.0, 1)),
        ranks(90, (20.0, 64), (1.0, 64)) | {"loss": [[9 * 0.99**row] * 2 for row in range(90)]},
        learned((20.0, 64), (1.01, 64), (1.0, 1)),  # one output needs one direction
        learned((20.0, 64), (1.0, 64), (1.0, 4)),  # nor do four need more
        ranks(9, (1.01, 64)),  # nothing tells what came in
    ],
    "batchnorm_mismatch": [
        running([0.499] * 70, [0.499] * 70),
        running([0.501] * 63 + [0.0] * 3, [0.0] * 66),
        running([0.7] * 66, [1.4] * 66, calls=3.0),  # of real and of made images
        running([9 * 0.98**row for row in range(70)], [0.0] * 70),  # a new one, momentum 0.02
        running([0.1] * 70, [1 - 0.01 * 1.013**row for row in range(70)]),  # as of 0.01 per step
        running([0.1] * 70, [9 * 0.98**row for row in range(70)]),
    ],
    "attention_collapse": [
        heads("attn_entropy_share", [0.099] * 40 + [0.101]),
        {"attn_entropy_share": [0.0] * 60},
        heads("attn_entropy_share", [0.0] * 60) | {"loss": [2.0] * 10 + [0.19] * 50},  # it copies
    ],
    "attention_logit_large": [heads("attn_max_logit", [50.0, -60.0])],
    "attention_logit_growing": [
        heads("attn_max_logit", [*GROWING, *[21.6] * 50]),
        heads("attn_max_logit", [*[15.0] * 50, *[17.9] * 50, *[21.8] * 50]),
        heads("attn_max_logit", [*GROWING, *[21.8] * 49]),
        heads("attn_max_logit", [*[10.0] * 50, *[13.0] * 50, *[19.9] * 50]),
    ],
    "early_divergence": [
        early([0.09] * 20, *[9.0] * 19),
        early([0.11] * 20, *[2.0] * 19),
        early([0.11] * 3, 2.1, 2.1),
        early([0.11] * 12, 2.1, 2.1, *[1.0] * 9),
        early([0.11, 0.11] + [0.0] * 12 + [0.11, 0.11], *[2.1] * 15),
        early([0.0] * 98 + [0.11] * 30, *[2.1] * 127),
        {"update_ratio": [[0.01, 0.02, 0.9, 0.9]] * 9, "loss": [[1.0] * 4, *[[5.0] * 4] * 8]},
        # A second optimizer updates one layer of four, in separate steps.
        {
            "update_ratio": [[0.01] * 3 + [np.nan], [np.nan] * 3 + [0.9]] * 5,
            "loss": [[1.0] * 4, *[[5.0] * 4] * 9],
        },
    ],
    "lr_high": [
        rates(0.099, -1.0, 25),
        rates(0.11, 0.31, 25),
        rates(0.11, -1.0, 19),
        rates(0.5, np.nan, 25),
        shrinking(0.6, 0.2, 25),  # of RMSprop, whose first steps are its largest
    ],
    "lr_low": [
        unmoved(0.99e-6, 1.9e-3, 12),
        unmoved(0.0, 1.0, 49),
        {  # gains in a warmup, which have the rate of all others
            "update_ratio": [[1e-7, 1e-5, 1e-4]] * 50,
            "grad_norm": [[0.01, 1.0, 1.0]] * 50,
            "weight_norm": [[8.0, 8.0, 0.8]] * 50,
        },
        {
            "update_ratio": [[0.0] * 3] * 50,
            "grad_norm": [[0.0, 0.0, 1.0]] * 50,
            "weight_norm": [[2.0] * 3] * 50,
        },
        {
            "update_ratio": [0.1, *[1e-7] * 50],
            "grad_norm": [1.0] * 51,
            "weight_norm": [2.0] * 51,
        },
        unmoved(1.01e-6, 1.0, 12),
        unmoved(0.99e-6, 1.0, 9),
        {
            "update_ratio": [1e-9 * step for step in range(300)],
            "grad_norm": [1.0] * 300,
            "weight_norm": [2.0] * 300,
        },
        {
            "update_ratio": [1e-3] * 200 + [1e-7] * 50,
            "grad_norm": [1.0] * 250,
            "weight_norm": [2.0] * 250,
        },
    ],
    "diverging_loss": [
        {"loss": [2.0, 2.0, 19.9, 19.95]},
        {"loss": [2.0, 2.0, 20.2, 20.1, 20.2]},
        {"loss": [2.0, 40.0, 50.0, 2.0, 60.0]},
        {"loss": [-2.0, -2.0, -50.0, -90.0]},
        {"loss": [30.0, *[0.01] * 30, 0.2, 0.3, 0.4]},
        {"loss": [0.5, *[0.01] * 450, 0.2, 0.3, 0.4]},
        {"loss": [*of_episodes(), 27.0, 53.0]},  # they grow longer, as an agent learns
        {"loss": [*falling(0.3, 60), *falling(9.0, 60)]},  # updates from one rollout, then another
    ],
    "loss_spike": [
        {"loss": [1.0, 1.2, 1.0] * 34 + [1.49, 1.21]},
        {"loss": [1.0, 1.02, 1.0] * 34 + [1.2, 1.1]},
        {"loss": [0.6, 0.9, 0.7] * 7 + [1.3, 1.1] + [0.6, 0.9, 0.7] * 20},  # batches of four
        {"loss": [1.0, 1.2, 1.0] * 6 + [99.0]},
        {"loss": [5.0, *[1.0] * 99, 5.9]},
        {"loss": [1.0] * 10 + [1e-4] * 110 + [1e-3] * 2},  # nothing is left to learn
        {"loss": [2.0] * 10 + [0.1, 0.12] * 60 + [0.31, 0.1]},  # one hard batch
        {"loss": [2.0] * 10 + [0.1, 0.12] * 60 + [1.9, 0.1]},
        {"loss": [2.0, 2.2] * 30 + [3.0, 2.0]},  # one more, before anything was learned
        {"loss": [0.01] * 10 + [0.3, 0.2] * 60 + [4.0, 4.0]},  # of an agent that meets rewards
        {"loss": [0.1, -0.1] * 40 + [4.0, 4.0]},  # a policy's
        {"loss": [*falling(0.3, 60), *falling(1.2, 60)]},  # updates from one rollout, then another
    ],
    "adam_spike_ahead": [
        surprised(4.99, 1.01),
        surprised(9.0, 1.0),
        {"adam_update_rms": [1.6] * 12 + [4.79], "loss": [1.0] * 12 + [2.0]},
        {"adam_update_rms": [*of_episodes(), 9.0], "loss": [1.0] * 60 + [2.0]},
        {
            "adam_update_rms": [[0.7] * 3] * 12 + [[9.0, 0.7, 0.7]],
            "loss": [[1.0] * 3] * 12 + [[2.0] * 3],
        },
    ],
    "one_sided_gan": [
        adversaries([0.049] * 19 + [0.051] + [0.049] * 19, 3.0),
        adversaries([0.049] * 60, 0.29),
        adversaries([0.03, 0.02, -0.01] * 20, 3.0),  # a critic that is as good as the generator
        adversaries([-4.0] * 60, 3.0),  # and one that is better
        adversaries([0.01, 0.02, 0.02] * 20, -0.01),  # whose weights are clipped
        adversaries([1.4, *[0.04] * 60], -0.05),
    ],
    "clips_too_often": [
        {"clip_fraction": [0.49] * 40},
        {"clip_fraction": [0.9] * 9},
        {"clip_fraction": [0.0] * 40},  # of one update for each batch
    ],
    "rollouts_differ": [{"logp_gap": [0.09] * 40}, {"logp_gap": [9.0] * 4}],
    "groups_without_signal": [
        {"reward": [0.2] * 40, "idle_group_share": [0.89] * 40},
        {"reward": [0.1] * 10 + [1.0] * 30, "idle_group_share": [0.0] * 20 + [1.0] * 20},
    ],
    "generator_behind": [
        behind(5.1e-4, 1.4, *[0.69] * 9),
        behind(4.9e-4, 1.4, *[0.71] * 9),
        behind(4.9e-4, 1.4, 0.69, 0.69, 0.8, 0.69, 0.69),
        behind(4.9e-4, -0.1, *[-9.0] * 9),  # a critic
        behind(4.9e-4, *[1.4] * 199, *[0.69] * 9),
        behind(2e-4, 1.4, *[0.69] * 9, of_others=1e-2),  # half of the layers are gains of 1
    ],
    "hardly_trains": [
        stuck(9.9e-5, 2.0, 1.97, 43),
        stuck(1.01e-4, 2.0, 2.0, 99),
        stuck(9.9e-5, 2.0, 1.95, 99),
        stuck(0.0, 2.0, 2.0, 99),
        stuck(9.9e-5, 2.0, 2.0, 99, grad=0.9e-3),
        stuck(9.9e-5, 2.0, 2.0, 99, first=2e-4),  # it was faster once
        stuck(9.9e-5, 2.0, 2.0, 99, of_another=2e-4),
        stuck(9.9e-5, 2.0, 2.0, 99, warmup=True),
        {  # once it has come down
            name: [*table, *stuck(9.9e-5, 2.0, 2.0, 99)[name]]
            for name, table in stuck(9.9e-5, 2.0, 1.9, 200).items()
        },
    ],
    "large_outputs": [
        first_outputs(10.1, 1.0, 1.0),  # one that is asked for large numbers
        first_outputs(9.9, 9.9, 9.9),
        first_outputs(1.0, 1.0, 3e8),  # scores that are masked with -1e9
        first_outputs(1.0, 1.0, 3.3e4, bits=0.0),  # and with -65504, half of them
        {
            "output_std": [[1.0, 1.0, 1.0]] + [[9e5] * 3] * 5,
            "range_headroom_bits": [[100.0] * 3] * 6,
        },
    ],
    "loader_bound": [{"data_wait_share": [0.299] * 60}, {"data_wait_share": [0.9] * 49}],
}


class TestBuiltIn(RuleSuite):
    rules = tuple(FIRES)
    logged = (*NAMED_SERIES, "skipped", "calls", "discarded_backwards")
    fires = FIRES
    silent = SILENT


def test_there_are_series_for_every_built_in_rule_that_is_about_series() -> None:
    ours = "notebook_probe.alerts.builtin."
    built_in = {one.name for one in RULES.values() if one.condition.__module__.startswith(ours)}
    asked = {
        "differs_from_reference",
        "evaluated_in_training_mode",
        "stale_probe",
        "trained_in_evaluation_mode",
        "uncleared_gradients",
        "untrained_adapter",
        *FACTS,
    }
    assert built_in - asked == FIRES.keys() == SILENT.keys()


WORKED_OUT = {
    "nonfinite_output": [": 1"],
    "exploding_gradient": ["is 10.1,", " 10 times", "by 15.10%"],
    "vanishing_gradient": [" 9.9e-09,", " is 1:"],
    "vanishing_with_depth": [" 0.5 times", " 6e-05 times", "15 of them"],
    "early_divergence": [" 11% ", "of 2.1 is", "the 2 that", " 0.01 times as large"],
    "always_clipped": ["92%", "less than 20%", " 0.05% "],
    "gradient_too_long": [" 9e-09 "],
    "batchnorm_mismatch": [" 0.50 running", " 0.00 from"],
    "generator_behind": [" 49% of its first", " 151%,", " 0.05% "],
    "groups_without_signal": ["91% of", "of 0.2 is not above the 0.2 "],
    "rollouts_differ": [" by 0.11 ", "over 5 values"],
    "clips_too_often": ["51% of"],
    "lr_high": [" 10% ", "(cosine 0.29)", " 0.01 times as large"],
    "hardly_trains": [" by 0.0001 ", " 1.97,", " with 2;", " 10 times as large"],
    "large_outputs": [" 10.1 "],
    "lr_low": [" 9.9e-07 ", " 0.0021:"],
    "loss_spike": ["to 1.51,", " 2.5 times"],
    "adam_spike_ahead": [" 5.0 times"],
    "attention_collapse": ["head 3 is 10.0%"],
    "attention_logit_large": ["head 3 is 50,"],
    "attention_logit_growing": ["of head 3,"],
    "loader_bound": ["30%"],
}


@pytest.mark.parametrize("name", WORKED_OUT)
def test_a_sentence_has_the_numbers_that_were_worked_out_for_it(name: str) -> None:
    tables = FIRES[name][0]
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
