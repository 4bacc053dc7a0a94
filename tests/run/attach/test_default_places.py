"""A quantity that is attached without a place is measured where it means something."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from notebook_probe.errors import NotApplicableError
from notebook_probe.model.map import ModelMap
from notebook_probe.run.attach.default_places import resolve_at_default_places
from notebook_probe.run.attach.presets import presets
from tests.models import ConvNet, Encoder, mlp


def places(model: nn.Module, quantity: str) -> list[str]:
    resolved = resolve_at_default_places(ModelMap(model), quantity, "every(10)")
    assert resolved.skipped == ()
    return [probe.place for probe in resolved.probes]


@pytest.mark.parametrize("quantity", ["loss_spike_score", "sharpness", "grad_depth_slope"])
def test_what_is_of_the_whole_model_is_measured_there(quantity: str) -> None:
    assert places(mlp(), quantity) == [""]


class OnCuda(nn.Parameter):
    """A parameter that says it is on a CUDA device."""

    is_cuda = True


def test_the_power_of_a_device_is_of_a_preset_where_there_is_one() -> None:
    model = mlp()
    [row] = [row for row in presets["system"].rows if "device_power" in row.names]
    assert row.places(ModelMap(model)) == ()
    model[2].weight = OnCuda(torch.ones(2))
    assert row.places(ModelMap(model)) == ("",)


def test_what_compares_with_targets_is_measured_at_the_output() -> None:
    assert places(mlp(), "accuracy") == [""]


def test_weights_are_measured_where_there_are_some_and_outputs_at_activations_too() -> None:
    assert places(mlp(), "weight_norm") == ["0", "2"]
    assert places(mlp(), "output_std") == ["0", "1", "2"]


def test_attention_is_measured_in_the_modules_that_compute_it() -> None:
    assert places(Encoder(), "attn_max_logit") == ["layer.self_attn"]
    assert places(Encoder(), "attn_head_entropy") == ["layer.self_attn"]


def test_running_statistics_are_measured_in_the_layers_that_keep_some() -> None:
    assert places(ConvNet(), "bn_mean_tid") == ["norm1", "norm2"]


def test_a_quantity_that_fits_nowhere_says_why() -> None:
    with pytest.raises(NotApplicableError, match="keeps no running mean"):
        places(mlp(), "bn_mean_tid")
