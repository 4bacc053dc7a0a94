"""What fits is decided once per kind of place, as attaching to each of its places would be."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from notebook_probe.errors import NotApplicableError
from notebook_probe.model.map import ModelMap
from notebook_probe.quantities import quantities
from notebook_probe.run.attach.default_places import resolve_at_default_places
from notebook_probe.run.attach.fitting import fitting
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.attach.request import misfit
from notebook_probe.run.attach.requests import PARAMETER_KIND
from tests.run.conftest import Watch


class OneOfEach(nn.Module):
    """One of everything that quantities look for, and two that differ in their options alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.relu, self.tanh, self.never = nn.ReLU(), nn.Tanh(), nn.ModuleList([nn.ReLU()])
        self.norm, self.plain = nn.BatchNorm1d(4), nn.BatchNorm1d(4, affine=False)
        self.unkept = nn.BatchNorm1d(4, track_running_stats=False)
        self.gain, self.flat = nn.LayerNorm(4), nn.LayerNorm(4, elementwise_affine=False)
        self.attention = nn.MultiheadAttention(4, 2)
        self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())


def test_every_place_gets_the_verdict_that_attaching_there_gives() -> None:
    net = OneOfEach()
    model_map = ModelMap(net)
    found = fitting(model_map, quantities.values())
    for path in model_map.by_every_path:
        kind = found.kinds[path or "(root)"]
        for quantity in quantities.values():
            reason, error = found.misfits[quantity.name][kind], misfit(model_map, path, quantity)
            if path != "attention.out_proj" or not reason.startswith("is never called"):
                assert bool(reason) == bool(error), (path, quantity.name, reason, error)
    for quantity in quantities.values():
        reason = found.misfits[quantity.name][PARAMETER_KIND]
        assert bool(reason) == bool(misfit(model_map, "first.weight", quantity)), quantity.name


def test_alike_modules_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(modules: Any, place: str, quantity: Any) -> None:
        asked.append(place)

    monkeypatch.setattr("notebook_probe.run.attach.fitting.misfit_at", counted)
    blocks = nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(50)))
    found = fitting(ModelMap(blocks), [quantities["grad_norm"]])
    assert len(found.kinds) == 151
    assert len(asked) == 1 + 4, "a parameter; the root, a block, a layer, an activation"


def test_a_reason_names_the_class_and_no_place(watch: Watch) -> None:
    run = watch(OneOfEach())
    found = run.controls.fitting()
    reason = found.misfits["weight_norm"][found.kinds["relu"]]
    assert reason == "needs 'weight'; ReLU has none"
    assert found.misfits["weight_norm"][found.kinds["first"]] == ""
    with pytest.raises(NotApplicableError, match=r"'relu' \(ReLU\) has none"):
        run.attach("relu", "weight_norm")
    of_step = next(one for one in quantities.values() if one.is_of_model)
    assert found.misfits[of_step.name][found.kinds["first"]].endswith("mark the root")
    assert found.misfits[of_step.name][found.kinds["(root)"]] == ""


class Calling(nn.MultiheadAttention):
    def forward(self, *given: Any, **named: Any) -> Any:
        return self.out_proj(given[0]), None


def test_what_attention_reads_and_never_calls_is_not_offered_for_its_calls(watch: Watch) -> None:
    net = OneOfEach()
    run = watch(net)
    found = run.controls.fitting()
    kind = found.kinds["attention.out_proj"]
    said = "is never called: nn.MultiheadAttention reads its weight itself"
    for of_calls in ("output_norm", "input_norm", "output_grad_norm", "dead_fraction"):
        assert found.misfits[of_calls][kind] == said
        assert found.misfits[of_calls][found.kinds["first"]] == ""
    for of_weights in ("weight_norm", "grad_norm", "weight_histogram"):
        expected = found.misfits[of_weights][found.kinds["first"]]
        assert found.misfits[of_weights][kind] == expected
    run.attach("attention.out_proj", "output_norm")  # by name it is not refused


def test_without_a_place_nothing_waits_for_a_call_of_what_attention_never_calls() -> None:
    """Neither of a preset nor of the default places; its weights are there."""
    names = ["output_norm", "feature_drift", "weight_norm"]
    model = nn.Sequential(nn.MultiheadAttention(4, 2), Calling(4, 2))
    model_map = ModelMap(model)
    of_presets = resolve_presets(model_map, ["default", "curvature"]).probes
    by_default = [resolve_at_default_places(model_map, name, "every(1)").probes for name in names]
    for probes in (of_presets, [probe for some in by_default for probe in some]):
        found = {(probe.place, probe.variable) for probe in probes}
        assert [name for name in names if ("0.out_proj", name) in found] == ["weight_norm"]
        assert [name for name in names if ("1.out_proj", name) in found] == names


def test_an_attention_that_calls_its_projection_is_offered_it() -> None:
    net = nn.Sequential(Calling(4, 2))
    found = fitting(ModelMap(net), [quantities["output_norm"]])
    assert found.misfits["output_norm"][found.kinds["0.out_proj"]] == ""
