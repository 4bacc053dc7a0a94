"""How often a run walks over its model: once to make its map, and again only when it changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from notebook_probe.probes.calibration import calibrate
from notebook_probe.record.format.axes import Axes
from notebook_probe.run.attach.presets import presets
from notebook_probe.run.attach.requests import Attach, Detach
from tests.models import floats, sgd, train
from tests.run.conftest import Watch

WALKS_OF_WATCH = 2
"""One for the map, one for who is called in compiled form."""


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The class of each module from which a walk began; parameters are walked to as well."""
    calibrate()  # once in a process, with models of its own
    begun: list[str] = []
    walk = nn.Module.named_modules

    def counted(self: nn.Module, memo: Any = None, *args: Any, **kwargs: Any) -> Any:
        if memo is None:  # a walk, not its way through a child
            begun.append(type(self).__name__)
        return walk(self, memo, *args, **kwargs)

    monkeypatch.setattr(nn.Module, "named_modules", counted)
    return begun


def chain(n: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(n)))


def paths(model: nn.Module) -> tuple[str, ...]:
    return tuple(path for path, _ in model.named_modules() if path)


@pytest.mark.parametrize("probes", [None, "default", [*presets], {"*": ["weight_norm"]}])
def test_watch_walks_a_model_as_often_whatever_is_asked_for(
    probes: Any, walks: list[str], watch: Watch
) -> None:
    model = chain(5)
    walks.clear()
    watch(model, probes=probes, channel_axis={nn.Tanh: -1})
    assert len(walks) == WALKS_OF_WATCH


def test_the_counter_counts_walks_to_modules_and_to_parameters(walks: list[str]) -> None:
    model = chain(2)
    assert [*model.modules(), *model.named_parameters(), *model[0].parameters()]
    assert walks == ["Sequential", "Sequential", "Sequential"]


@pytest.mark.parametrize("quantity", ["weight_norm", "output_norm", "grad_norm", "update_ratio"])
@pytest.mark.parametrize("where", ["paths", "glob", "usual"])
def test_attaching_walks_nothing(where: str, quantity: str, walks: list[str], watch: Watch) -> None:
    model = chain(20)
    asked = {"paths": paths(model), "glob": ("*",), "usual": None}[where]
    run, optimizer = watch(model, probes=None), sgd(model)
    train(model, optimizer, floats(3, 4), range(2))
    walks.clear()
    ticket = run.controls.put(Attach(asked, quantity))
    inputs = floats(3, 4)
    for step in range(2, 5):
        optimizer.zero_grad()
        model(inputs(step)).sum().backward()
        optimizer.step()
    assert ticket.state == "applied", ticket.text
    run.controls.put(Detach(("*",), quantity))
    model(inputs(5))
    assert not run.probes()
    assert not walks


@pytest.mark.slow
def test_steps_walk_nothing_with_every_preset_on(walks: list[str], watch: Watch) -> None:
    model = chain(3)
    wanted = [name for name in presets if name not in ("curvature", "everything")]
    run, optimizer = watch(model, probes=wanted), sgd(model)
    train(model, optimizer, floats(3, 4), range(1))  # the optimizer is looked at once
    walks.clear()
    train(model, optimizer, floats(3, 4), range(1, 6))
    run.status()
    assert not walks


def test_a_model_that_has_grown_is_walked_once_more(walks: list[str], watch: Watch) -> None:
    model = chain(3)
    run, optimizer = watch(model, probes={"*": ["output_norm", "weight_norm"]}), sgd(model)
    train(model, optimizer, floats(3, 4), range(2))
    model.append(nn.Linear(4, 4))
    walks.clear()
    train(model, optimizer, floats(3, 4), range(2, 4))
    assert len(walks) == 1
    run.controls.settle()
    assert {"3"} == {p.module for p in run.probes() if p.attached_step == 2}


def test_a_click_on_many_modules_grows_each_axis_once(
    monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    model, grown = chain(30), list[int]()
    run = watch(model, probes=None)
    extended = Axes.extended

    def counted(self: Axes, *args: Any) -> Axes:
        found = extended(self, *args)
        grown.append(found is not self)
        return found

    monkeypatch.setattr(Axes, "extended", counted)
    run.controls.put(Attach(paths(model), "output_norm"))
    train(model, sgd(model), floats(3, 4), range(1))
    assert sum(grown) == 1


@pytest.mark.slow
def test_a_compiled_part_is_found_by_a_preset_s_own_places(watch: Watch) -> None:
    from tests.run.attach.test_presets import OWN

    model = chain(2)
    model[1] = torch.compile(model[1], backend="eager")  # type: ignore[assignment]
    run = watch(model, probes=[OWN])
    assert [probe.module for probe in run.probes()] == ["0.0", "1.0"]
