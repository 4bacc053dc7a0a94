"""What the presets attach, and that all of it gives numbers in a real run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import notebook_probe as nbp
from notebook_probe.model.map import ModelMap
from notebook_probe.quantities import as_quantity
from notebook_probe.run.attach.presets import DEFAULT, presets
from notebook_probe.testing.cases import CASES
from notebook_probe.testing.cases import train as classify
from tests.models import ConvNet, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

STEPS = 11
OTHERS = {"attention": CASES["attention"]}


def recorded(watch: Watch, preset: str) -> tuple[set[str], set[str]]:
    """The numbers that a preset asked for of a small network, and those that came."""
    case = OTHERS.get(preset, CASES["convolution"])
    model = case.made()
    run = watch(model, probes=preset)
    run.probe_batch(case.batch(STEPS), torch.arange(4) % 3, cross_entropy)
    classify(model, map(case.batch, range(STEPS)), run)
    assert not run.status().errors
    asked = {probe.quantity for probe in run.probes()}
    numbers = {name for name in asked if as_quantity(name).axis is None}
    data = run.data.load()
    return numbers, {name for name in numbers & set(data) if np.isfinite(data[name]).any()}


@pytest.mark.parametrize("name", [name for name in presets if name != "everything"])
def test_what_a_preset_attaches_is_measured(name: str, watch: Watch) -> None:
    asked, found = recorded(watch, name)
    assert asked
    assert asked == found


@pytest.mark.parametrize("name", ["default", "alerts", "spectra", "gradients"])
def test_of_a_lookup_no_preset_waits_for_the_size_of_indices(name: str, watch: Watch) -> None:
    model = nn.Sequential(nn.Embedding(32, 8), nn.Linear(8, 32))
    run, optimizer = watch(model, probes=name), sgd(model)
    tokens = torch.arange(64).reshape(16, 4) % 32
    for _ in range(STEPS):
        loss = cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    at_lookup = [probe for probe in run.status().probes if probe.module == "0"]
    assert at_lookup
    assert not [probe.quantity for probe in at_lookup if "indices" in probe.note]


@pytest.mark.slow
def test_everything_can_be_attached_at_once_and_nothing_raises(watch: Watch) -> None:
    asked, found = recorded(watch, "everything")
    assert {"weight_norm", "output_std", "grad_cosine", "spectral_norm", "bn_mean_tid"} <= found
    assert len(found) > 0.8 * len(asked), asked - found


def test_every_name_in_a_preset_is_a_quantity_and_written_as_it_is_called() -> None:
    names = [name for preset in presets.values() for row in preset.rows for name in row.names]
    assert [as_quantity(name).name for name in names] == names


def test_every_preset_says_what_it_is_for() -> None:
    assert all(preset.about.endswith(".") for preset in presets.values())


def test_watch_and_the_page_on_what_is_measured_name_every_preset() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "measure.md").read_text("utf-8")
    for text in (page, nbp.watch.__doc__ or ""):
        assert [name for name in presets if f'"{name}"' not in text] == []


def test_batchnorm_s_preset_sits_at_batchnorms_alone(watch: Watch) -> None:
    run = watch(made(ConvNet), probes="batchnorm")
    assert {probe.module for probe in run.probes()} == {"norm1", "norm2"}


def test_attention_s_preset_sits_at_the_innermost_attention_with_parameters(watch: Watch) -> None:
    class AttentionMask(nn.Module):
        """Has an attention's name, and nothing to learn."""

    class OuterAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mask, self.inner = AttentionMask(), nn.MultiheadAttention(4, 2)

    class CausalSelfAttn(nn.Linear):
        """A user's own."""

    model = nn.ModuleList([OuterAttention(), CausalSelfAttn(4, 4), nn.Linear(4, 4)])
    run = watch(model, probes="attention")
    assert {probe.module for probe in run.probes()} == {"0.inner", "1"}


@pytest.mark.parametrize("names", [["default", "alerts"], ["alerts", "default"]])
def test_what_presets_share_is_measured_as_often_as_any_of_them_does(
    watch: Watch, names: list[str]
) -> None:
    of_head = {p.quantity: p.schedule for p in watch(made(mlp), probes=names).probes()}
    assert of_head["grad_rms"] == "every(1)"
    assert of_head["silent_input_fraction"] == "every(10)"


def test_of_schedules_that_nobody_can_compare_the_first_counts(watch: Watch) -> None:
    by_clock = nbp.Preset(
        "clock", "By the clock.", (nbp.PresetRow(DEFAULT, schedule="seconds(9)"),)
    )
    for names in (["default", by_clock], [by_clock, "default"]):
        first = watch(made(mlp), probes=names).probes()[0].schedule
        assert (first == "every(1)") == (names[0] == "default")


def test_presets_join(watch: Watch) -> None:
    run = watch(made(mlp), probes=["default", "everything"])
    of_head = {p.quantity: p.schedule for p in run.probes() if p.module == "2"}
    assert all(of_head[name] == "every(1)" for name in DEFAULT)
    assert of_head["effective_rank"] == "every(10)"
    assert len(of_head) == sum(probe.module == "2" for probe in run.probes())


def heads(model_map: ModelMap) -> list[str]:
    """The linear layers."""
    return [path for path, module in model_map.modules.items() if isinstance(module, nn.Linear)]


OWN = nbp.Preset("test_heads", "Ranks of heads.", (nbp.PresetRow(("effective_rank",), heads),))


def test_a_preset_of_one_s_own_is_a_value(watch: Watch) -> None:
    run = watch(made(mlp), probes=[OWN])
    assert [(p.module, p.quantity) for p in run.probes()] == [
        ("0", "effective_rank"),
        ("2", "effective_rank"),
    ]


def test_a_preset_of_one_s_own_can_have_a_name(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presets, "_members", dict(presets._members))
    presets.add(OWN.name, OWN)
    assert nbp.list_presets()["test_heads"] is OWN
    assert {probe.module for probe in watch(made(mlp), probes="test_heads").probes()} == {"0", "2"}


def test_nothing_built_in_that_needs_a_pass_of_its_own_is_in_everything() -> None:
    names = {name for row in presets["everything"].rows for name in row.names}
    costs = {as_quantity(name).cost for name in names}
    assert "factorisation" in costs
    assert not costs & {"forward", "backward"}


def test_a_model_that_grows_has_the_preset_on_what_is_new(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes="precision")
    optimizer = sgd(model)
    train(model, optimizer, floats(3, 4), range(1))
    model.append(nn.Linear(2, 2))
    optimizer.add_param_group({"params": list(model[3].parameters())})
    train(model, optimizer, floats(3, 4), range(1, 3))
    assert {"range_headroom_bits", "grad_abs_max"} <= {
        probe.quantity for probe in run.probes() if probe.module == "3"
    }


def test_attention_that_no_class_is_named_after_is_heard_from_the_model(watch: Watch) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(8, 24)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
            return nn.functional.scaled_dot_product_attention(q, k, v).flatten(2)

    model = Block()
    run = watch(model, probes="attention")
    train_step(model, sgd(model), floats(2, 5, 8)(0))
    assert 0 < float(run.series("", "attn_entropy")[0]) <= np.log(5)
