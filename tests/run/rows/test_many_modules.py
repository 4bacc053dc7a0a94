"""Models of many modules: what a step brings of all of them is not paid for one by one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.model.map import ModelMap
from notebook_probe.record.format.axes import Axes
from notebook_probe.record.format.source import Variable
from tests.models import sgd
from tests.run.conftest import Watch


class Collecting(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        nbp.collect("mine", input.sum())
        return super().forward(input)


class Repeating(nn.Module):
    """Calls one layer again and again."""

    def __init__(self, n_calls: int) -> None:
        super().__init__()
        self.layer, self.n_calls = nn.Linear(2, 2), n_calls

    def forward(self, inputs: Tensor) -> Tensor:
        for _ in range(self.n_calls):
            inputs = self.layer(inputs)
        return inputs


def vectors(watch: Watch, n: int) -> tuple[nn.Module, nbp.Run]:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(n)))
    return model, watch(model, probes={"*": ["output_channel_mean"]})


def collected(watch: Watch, n: int) -> tuple[nn.Module, nbp.Run]:
    model = nn.Sequential(*(Collecting(2, 2) for _ in range(n)))
    return model, watch(model, probes=None)


def calls(watch: Watch, n: int) -> tuple[nn.Module, nbp.Run]:
    model = Repeating(n)
    run = watch(model, probes=None)
    run.attach("layer", "output_norm", per_call=True)
    return model, run


@pytest.mark.parametrize("make", [vectors, collected, calls])
def test_the_axes_are_made_as_often_for_many_columns_as_for_few(
    make: Callable[[Watch, int], tuple[nn.Module, nbp.Run]],
    watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    extended = Axes.extended

    def counted(self: Axes, modules: Sequence[str], variables: Sequence[Variable]) -> Axes:
        axes = extended(self, modules, variables)
        made.append(axes is not self)
        return axes

    monkeypatch.setattr(Axes, "extended", counted)
    times = []
    for n in (4, 20):
        model, run = make(watch, n)
        optimizer = sgd(model)
        made.clear()
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
        run.controls.settle()
        times.append(sum(made))
        assert run.status().problem == ""
        streams = [*run.streams.values(), *run.snapshot().ragged]
        assert max(len(stream.modules) for stream in streams) >= n
        run.close()
    assert times[0] == times[1] <= 2


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("probes", [None, "no such preset"])
def test_the_garbage_collector_rests_while_a_run_is_made_and_is_then_as_it_was(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, enabled: bool, probes: str | None
) -> None:
    seen: list[bool] = []
    of = ModelMap.__init__

    def made(self: ModelMap, model: nn.Module) -> None:
        seen.append(gc.isenabled())
        of(self, model)

    monkeypatch.setattr(ModelMap, "__init__", made)
    try:
        if not enabled:
            gc.disable()
        try:
            watch(nn.Linear(2, 2), probes=probes)
        except nbp.UnknownNameError:
            assert probes
        assert (gc.isenabled(), any(seen), bool(seen)) == (enabled, False, True)
    finally:
        gc.enable()
