"""What everybody who comes from another tool or a paper looks for, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from notebook_probe.errors import UnknownNameError
from notebook_probe.quantities import Quantity, as_quantity, quantities
from tests.static.explained import place
from tests.static.offenders import refuse

pytestmark = pytest.mark.static

CATALOGUE = """
loss_ema                 | scalar        | L  | several
lr                       | scalar        | O  | one
weight_decay             | scalar        | O  | one
momentum                 | scalar        | O  | one
weight_norm              | parameters    | W  | one     | WeightNorm
weight_rms               | parameters    | W  | one
weight_grad_norm         | parameters    | g  | one     | WeightGradNorm
grad_norm                | parameters    | g  | one     | optimizer_grads_l2norm grad_norm_clipped
grad_raw_norm            | parameters    | g  | one
clip_coefficient         | parameters    | Og | one
amp_scale                | scalar        | O  | one
amp_skipped              | scalar        | O  | several
log_step_size            | parameters    | W  | one     | trainer_log_step_size_l2norm
update_ratio             | parameters    | W  | one
nonfinite_fraction       | activations   | y  | one
input_nonfinite_fraction | activations   | x  | one
weight_nonfinite_fraction | parameters   | W  | one
grad_nonfinite_fraction  | parameters    | g  | one
output_mean              | activations   | y  | one
output_std               | activations   | y  | one
output_rms               | activations   | y  | one
output_norm              | activations   | y  | one
output_abs_max           | activations   | y  | one
input_mean               | activations   | x  | one     | batch_input_mean
input_channel_mean       | activations   | x  | one     | InputMean
input_std                | activations   | x  | one     | InputStd batch_input_std
input_rms                | activations   | x  | one
input_norm               | activations   | x  | one     | InputSndNorm
input_abs_max            | activations   | x  | one
output_grad_norm         | activations   | d  | one     | OutputGradSndNorm
zero_fraction            | activations   | y  | one
step_time                | scalar        | t  | several
data_wait_share          | scalar        | t  | several
samples_per_second       | scalar        | tx | several
peak_memory              | scalar        | t  | several
device_memory            | scalar        | t  | several
device_utilization       | scalar        | t  | several
device_power             | scalar        | t  | several
distance_from_init       | parameters    | W  | several
layer_rotation           | parameters    | W  | several
sign_flips               | parameters    | W  | several
sign_flip_count          | parameters    | W  | several | WeightParamJump
spectral_norm            | factorisation | W  | one
weight_stable_rank       | factorisation | W  | one
weight_alpha             | factorisation | W  | one
weight_singular_values   | factorisation | W  | one
weight_histogram         | sort          | W  | one
weight_log_histogram     | sort          | W  | one
param_histogram          | sort          | W  | one     | histogram_regular
update_cosine            | parameters    | Wg | one
update_rms               | parameters    | W  | one
update_orthogonality     | factorisation | W  | one
grad_cosine              | parameters    | g  | several
grad_rms                 | parameters    | g  | one
grad_abs_max             | parameters    | g  | one
grad_depth_slope         | parameters    | g  | one
grad_histogram           | sort          | g  | one
grad_log_histogram       | sort          | g  | one
grad_zero_fraction       | parameters    | g  | one
grad_below_eps_fraction  | parameters    | Og | one
gradient_noise_scale     | parameters    | g  | several
gsnr                     | parameters    | g  | several
norm_test                | parameters    | g  | one
inner_product_test       | parameters    | g  | several
orthogonality_test       | parameters    | g  | several
stiffness                | parameters    | g  | several
early_stopping_evidence  | parameters    | g  | several
alpha_step               | backward      | L  | several
output_grad_cov_max_eig  | factorisation | d | one | BackwardOutputEigOfCov grad_output_cov_max_eig
output_grad_cov_eigs     | factorisation | d  | one     | BackwardOutputEigOfCovExtension
dead_fraction            | activations   | y  | several
linear_dead_fraction     | activations   | y  | several | LinearDeadNeuronNum
dormant_fraction         | activations   | y  | one
silent_input_fraction    | activations   | x  | one
saturated_fraction       | activations   | y  | one
output_histogram         | sort          | y  | one     | activation_histogram
output_log_histogram     | sort          | y  | one
input_histogram          | sort          | x  | one
input_log_histogram      | sort          | x  | one
output_quantiles         | sort          | y  | one     | quantiles
input_quantiles          | sort          | x  | one
channel_kurtosis         | activations   | y  | one
massive_ratio            | sort          | y  | one
range_headroom_bits      | activations   | y  | one
output_grad_headroom_bits | activations  | d  | one
underflow_fraction       | activations   | y  | one
fp8_error                | activations   | y  | one
fp8_underflow_fraction   | activations   | y  | one
output_grad_fp8_error    | activations   | d  | one
output_grad_fp8_underflow_fraction | activations | d | one
output_dtype             | activations   | y  | one
output_grad_underflow_fraction | activations | d | one
residual_ratio           | activations   | xy | one
feature_drift            | forward       | y  | several
distribution_shift       | sort          | y  | several
input_cov_max_eig        | factorisation | x  | one     | InputCovMaxEig
input_cov_stable_rank    | factorisation | x  | one     | InputCovStableRank
input_cov_condition_20   | factorisation | x  | one     | InputCovCondition20
input_cov_condition_50   | factorisation | x  | one     | InputCovCondition50
input_cov_condition_80   | factorisation | x  | one     | InputCovCondition80
input_cov_condition_100  | factorisation | x  | one     | InputCovCondition
input_cov_condition      | factorisation | x  | one
input_cov_eigs           | factorisation | x  | one     | ForwardInputEigOfCovExtension
effective_rank           | factorisation | y  | one     | RankMe
participation_ratio      | factorisation | y  | one
saturation               | factorisation | y  | several
output_cov_eigs          | factorisation | y  | one     | spectrum
cka_to_reference         | forward       | y  | several
neural_collapse_nc1      | factorisation | Dy | one
linear_probe_accuracy    | factorisation | Dy | one
bn_mean_tid              | activations   | xy | several | MeanTID
bn_var_tid               | activations   | xy | several | VarTID
norm_gain_rms            | parameters    | W  | one
norm_bias_rms            | parameters    | m  | one
attn_entropy             | forward       | a  | one
attn_entropy_min         | forward       | a  | one
attn_max_logit           | forward       | a  | one
qk_norm_product          | forward       | a  | one
attn_sink_share          | forward       | a  | one
attn_narrowest_head      | forward       | a  | one
attn_max_logit_head      | forward       | a  | one
logit_logsumexp          | activations   | y  | one
prediction_entropy       | activations   | y  | one
confidence               | activations   | y  | one
ece                      | activations   | Dy | one
router_load_entropy      | activations   | y  | one
router_load              | activations   | y  | one
router_max_violation     | activations   | y  | one
dead_expert_fraction     | activations   | y  | one
adam_update_rms          | parameters    | Og | one
moment_ratio             | parameters    | O  | one
effective_lr_quantiles   | sort          | O  | one
sharpness                | backward      | L  | one
hessian_trace            | backward      | L  | one
sam_sharpness            | backward      | L  | one
tic_trace                | backward      | L  | one
loss_spike_score         | scalar        | L  | several
train_eval_gap           | scalar        | L  | several
sample_loss_quantiles    | sort          | D  | one
worst_samples            | sort          | D  | one
worst_sample_losses      | sort          | D  | one
loss_by_bucket           | scalar        | D  | several
samples_by_bucket        | scalar        | D  | several
forgetting_events        | activations   | Dy | several
el2n                     | activations   | Dy | one
label_entropy            | scalar        | D  | one
label_share              | scalar        | D  | one
padding_share            | scalar        | D  | one
truncated_share          | scalar        | D  | one
duplicate_fraction       | sort          | x  | one
batch_seen_before        | sort          | x  | several
loss_landscape_1d        | backward      | L  | one
loss_landscape_2d        | backward      | L  | one
loss_landscape_path      | backward      | L  | several
path_shares              | backward      | L  | several
"""
"""Name, cost, what it is of, how many steps a value is of, other names.

W weight and its update, g gradient, x input, y output, d gradient of the output, a attention, O
optimizer and scaler, L loss, D batch, t time and memory, m the module itself.
"""

OF = {
    "weight": "W", "update": "W", "grad": "g", "grad_raw": "g", "grad_micro": "g",
    "input": "x", "output": "y", "probe_output": "y", "grad_output": "d", "attention": "a",
    "state": "O", "group": "O", "scaler": "O", "loss_scale": "O",
    "module": "m", "logged": "L", "landscape": "L", "batch": "D",
    "step_seconds": "t", "wait_seconds": "t", "peak_bytes": "t",
    "used_bytes": "t", "busy_share": "t", "device_watts": "t",
}  # fmt: skip

ROWS = [[cell.strip() for cell in row.split("|")] for row in CATALOGUE.strip().splitlines()]


def letters(quantity: Quantity) -> str:
    families = {need.partition(".")[0] for need in quantity.needs}
    beside = families if families == {"module"} else families - {"module"}
    return "".join(sorted({OF[family] for family in beside}))


def unknown(aliases: Iterable[str], quantity: Quantity) -> list[str]:
    """Return the names that do not lead to the quantity."""
    return [one for one in aliases if one not in quantities or quantities[one] is not quantity]


def wrong_rows(rows: Iterable[list[str]]) -> Iterator[str]:
    """Find rows whose quantity is missing or differs, and what differs."""
    for row in rows:
        name, cost, of, steps, *others = row
        try:
            found = as_quantity(name)
        except UnknownNameError as error:
            yield f"{row}: {error}"
            continue
        expected = {
            "name": (found.name, name),
            "cost": (found.cost, cost),
            "features": (letters(found), of),
            "spans_steps": (found.spans_steps, steps == "several"),
            "formula": (bool(found.explained.formula), True),
            "question": (bool(found.question), True),
            "unknown aliases": (unknown(" ".join(others).split(), found), []),
        }
        for what, (is_there, wanted) in expected.items():
            if is_there != wanted:
                yield f"{place(found)}: {what} is {is_there}; in the catalogue {wanted}"


def test_every_row_of_the_catalogue_is_there_and_as_it_should_be() -> None:
    assert len(ROWS) > 100
    refuse(wrong_rows(ROWS), "a row of the catalogue is a quantity")


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (["grad_nrom", "parameters", "g", "one"], "no quantity 'grad_nrom'"),
        (["InputMean", "activations", "x", "one"], "name is input_channel_mean"),
        (["grad_norm", "sort", "g", "one"], "cost is parameters; in the catalogue sort"),
        (["grad_norm", "parameters", "W", "one"], "features is g; in the catalogue W"),
        (["grad_norm", "parameters", "g", "several"], "spans_steps is False"),
        (["grad_norm", "parameters", "g", "one", "GradNrom"], "unknown aliases is ['GradNrom']"),
    ],
)
def test_a_row_that_differs_is_found(row: list[str], found: str) -> None:
    [offender] = wrong_rows([*ROWS, row])
    assert found in offender


def test_no_row_is_there_twice() -> None:
    names = [name for row in ROWS for name in (row[0], *" ".join(row[4:]).split())]
    assert len(names) == len(set(names))


def test_who_looks_for_the_loss_is_told_what_to_do() -> None:
    with pytest.raises(UnknownNameError) as caught:
        as_quantity("loss")
    said = str(caught.value)
    assert "no quantity 'loss': run.log(loss=loss) records it" in said
    assert all(name in said for name in ("loss_ema", "loss_spike_score", "train_eval_gap"))
