"""The names that other systems give to quantities, one by one."""

from __future__ import annotations

import pytest

from notebook_probe.errors import UnknownNameError
from notebook_probe.quantities import as_quantity

TAIYI = {
    "InputSndNorm": "input_norm",
    "OutputGradSndNorm": "output_grad_norm",
    "WeightNorm": "weight_norm",
    "WeightGradNorm": "weight_grad_norm",
    "WeightParamJump": "sign_flip_count",
    "InputMean": "input_channel_mean",
    "InputStd": "input_std",
    "InputCovMaxEig": "input_cov_max_eig",
    "InputCovStableRank": "input_cov_stable_rank",
    "InputCovCondition": "input_cov_condition_100",
    "InputCovCondition20": "input_cov_condition_20",
    "InputCovCondition50": "input_cov_condition_50",
    "InputCovCondition80": "input_cov_condition_80",
    "ForwardInputEigOfCovExtension": "input_cov_eigs",
    "BackwardOutputEigOfCovExtension": "output_grad_cov_eigs",
    "BackwardOutputEigOfCov": "output_grad_cov_max_eig",
    "LinearDeadNeuronNum": "linear_dead_fraction",
    "RankMe": "effective_rank",
    "MeanTID": "bn_mean_tid",
    "VarTID": "bn_var_tid",
}
GOMLX = {
    "optimizer_grads_l2norm": "grad_norm",
    "trainer_log_step_size_l2norm": "log_step_size",
}
MINDSPORE = {"histogram_regular": "param_histogram"}
OURS = {
    "activation_histogram": "output_histogram",
    "grad_output_cov_max_eig": "output_grad_cov_max_eig",
    "quantiles": "output_quantiles",
    "spectrum": "output_cov_eigs",
}


def test_the_names_of_other_systems_are_known() -> None:
    wanted = {**TAIYI, **GOMLX, **MINDSPORE, **OURS}
    assert {alias: as_quantity(alias).name for alias in wanted} == wanted


def test_what_never_existed_is_unknown_there_and_here() -> None:
    with pytest.raises(UnknownNameError, match="WeightStatistic"):
        as_quantity("WeightStatistic")
