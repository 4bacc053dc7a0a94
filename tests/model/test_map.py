"""The map of a model agrees with torch's own walks, and says when it no longer does."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrizations

from notebook_probe.model.changes import ROUND
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import attention_places, select
from notebook_probe.run.attach.module_table import module_table
from tests.models import ConvNet, Encoder, Shared, Tied, mlp

LEAVES: list[Callable[[], nn.Module]] = [
    lambda: nn.Linear(2, 2),
    lambda: nn.Linear(2, 2, bias=False),
    nn.ReLU,
    lambda: parametrizations.weight_norm(nn.Linear(2, 2)),
    lambda: nn.MultiheadAttention(2, 1),
]


@st.composite
def trees(draw: st.DrawFn, may_compile: bool = False) -> nn.Module:
    """A model with modules and parameters that lie in several places."""
    made: list[nn.Module] = []
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.integers(0, 5 if may_compile else 4))
        if kind == 0 or not made:
            one = draw(st.sampled_from(LEAVES))()
        elif kind == 1:  # made before: it may become another's child too
            one = nn.Sequential(*draw(st.lists(st.sampled_from(made), min_size=1, max_size=3)))
        elif kind == 2:
            one = nn.ModuleDict({"a": draw(st.sampled_from(made)), "b": nn.Linear(2, 2)})
        elif kind == 3:
            one = tied(draw(st.sampled_from(made)))
        elif kind == 4:
            one = nn.ModuleList([made[-1], draw(st.sampled_from(made))])
        else:
            one = torch.compile(inside(made[-1]), backend="eager")  # type: ignore[assignment]
        made.append(one)
    return nn.Sequential(*draw(st.lists(st.sampled_from(made), min_size=1, max_size=4)))


def tied(to: nn.Module) -> nn.Module:
    """A layer whose weight is the first of another's parameters."""
    layer = nn.Linear(2, 2)
    first = next(to.parameters(), None)
    if first is not None:
        layer.weight = first
    return layer


def stripped(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """By the names without those of compiled wrappers; the first of a name counts."""
    found: dict[str, Any] = {}
    for name, one in pairs:
        found.setdefault(".".join(p for p in name.split(".") if p != "_orig_mod"), one)
    return found


def inside(module: nn.Module) -> nn.Module:
    while isinstance(module, torch._dynamo.OptimizedModule):
        module = module._orig_mod
    return module


def same(left: Any, right: Any) -> None:
    """The same keys in the same order, and at each the same object."""
    assert [*left] == [*right]
    assert all(left[key] is right[key] for key in right)


@given(model=trees())
def test_it_agrees_with_torch_s_own_walks(model: nn.Module) -> None:
    found = ModelMap(model)
    same(found.modules, dict(model.named_modules()))
    assert found.paths == tuple(path for path, _ in model.named_modules())
    same(found.by_every_path, dict(model.named_modules(remove_duplicate=False)))
    same({k: slot.get() for k, slot in found.parameters.items()}, dict(model.named_parameters()))


@given(model=trees(may_compile=True))
def test_compiled_wrappers_stand_in_no_name(model: nn.Module) -> None:
    found = ModelMap(model)
    every = stripped(model.named_modules(remove_duplicate=False))
    same(found.by_every_path, every)
    assert all(module is inside(every[path]) for path, module in found.modules.items())
    parameters = {path: slot.get() for path, slot in found.parameters.items()}
    same(parameters, stripped(model.named_parameters()))


@given(model=trees(may_compile=True))
def test_every_path_has_a_first_one_that_means_the_same(model: nn.Module) -> None:
    found = ModelMap(model)
    for path, module in found.by_every_path.items():
        first = found.first_path(path)
        assert first in found.modules
        assert found.modules[str(first)] is inside(module)
        assert select(found, path) == (first,)
    for path, value in stripped(model.named_parameters(remove_duplicate=False)).items():
        first = found.first_path(path)
        assert first in found.parameters
        assert found.parameters[str(first)].get() is value
        assert select(found, path) == (first,)


@given(model=trees(may_compile=True))
def test_the_parameters_below_a_path_are_those_of_the_module_there(model: nn.Module) -> None:
    found = ModelMap(model)
    for path, module in found.by_every_path.items():
        below = [slot.get() for slot in found.slots(path, below=True)]
        values = [value for value in below if value is not None]
        assert [*map(id, values)] == [*map(id, module.parameters())]
        assert found.has_parameters(path) == bool(values)


@given(model=trees(may_compile=True))
def test_the_table_counts_what_each_module_and_what_is_below_it_owns(model: nn.Module) -> None:
    found = ModelMap(model)
    for row, (_, module) in zip(module_table(found), found.modules.items(), strict=True):
        assert row.class_name == type(module).__name__
        assert row.n_params == sum(value.numel() for value in module.parameters())
        assert row.n_own_params == sum(v.numel() for v in module.parameters(recurse=False))


@given(model=trees(may_compile=True))
def test_a_module_is_found_by_itself(model: nn.Module) -> None:
    found = ModelMap(model)
    for path, module in model.named_modules():
        first = found.path_of(module)
        assert first == found.first_path(next(iter(stripped([(path, module)]))))
        assert set(found.paths_of(module)) == {
            path for path, one in found.modules.items() if one is inside(module)
        }
    assert found.path_of(nn.Linear(2, 2)) is None
    assert found.paths_of(nn.Linear(2, 2)) == ()


@given(model=trees())
def test_attention_places_are_the_innermost_ones_with_parameters(model: nn.Module) -> None:
    kinds = {
        path: module
        for path, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention)
    }
    assert attention_places(ModelMap(model)) == tuple(kinds)


def test_the_weight_of_a_place_is_its_own_or_its_original() -> None:
    model = nn.Sequential(parametrizations.weight_norm(nn.Linear(2, 2)), nn.LSTM(2, 2), nn.ReLU())
    found = ModelMap(model)
    assert [slot.name for slot in found.slots("0")] == ["original0", "original1"]
    assert len(found.slots("1")) == 4
    assert found.slots("2") == found.slots("nowhere.weight") == ()
    (bias,) = found.slots("0.bias")
    assert bias.get() is dict(model.named_parameters())["0.bias"]


def test_classes_are_found_by_their_own_name_and_by_that_of_a_base() -> None:
    model = Encoder()
    found = ModelMap(model)
    linear = found.paths_by_class["NonDynamicallyQuantizableLinear"]
    assert linear == ("layer.self_attn.out_proj",)
    assert set(linear) < set(found.paths_by_base_class["Linear"])


def attached() -> tuple[nn.Module, Callable[[], object]]:
    model = mlp()
    return model, lambda: model.append(nn.Linear(2, 2))


def replaced() -> tuple[nn.Module, Callable[[], object]]:
    model = mlp()
    return model, lambda: setattr(model, "1", nn.Tanh())


def parametrized() -> tuple[nn.Module, Callable[[], object]]:
    model = mlp()
    return model, lambda: parametrizations.spectral_norm(model[0])


def another_parameter() -> tuple[nn.Module, Callable[[], object]]:
    model = mlp()
    return model, lambda: setattr(model[0], "weight", nn.Parameter(torch.zeros(8, 4)))


def removed() -> tuple[nn.Module, Callable[[], object]]:
    model = Shared()
    return model, lambda: delattr(model, "twice")


@pytest.mark.parametrize("change", [attached, replaced, parametrized, another_parameter, removed])
def test_it_says_that_the_tree_has_changed(
    change: Callable[[], tuple[nn.Module, Callable[[], object]]],
) -> None:
    model, act = change()
    found = ModelMap(model)
    assert not any(found.has_changed() for _ in range(ROUND))
    assert not found.differs()
    act()
    assert found.differs()
    n_looks = 1 if change is not removed else ROUND  # torch tells of what is registered alone
    assert any(found.has_changed() for _ in range(n_looks))
    assert not ModelMap(model).differs()


def many() -> nn.Sequential:
    """More modules than are looked at each time."""
    return nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(50)))


@pytest.mark.parametrize("place", [0, 24, 49])
def test_what_is_registered_in_a_large_tree_is_seen_at_once(place: int) -> None:
    for change in (
        lambda block: block.add_module("late", nn.Tanh()),
        lambda block: setattr(block, "1", nn.ReLU()),
        lambda block: setattr(block[0], "bias", nn.Parameter(torch.ones(2))),
        lambda block: parametrizations.weight_norm(block[0]),
    ):
        model = many()
        found = ModelMap(model)
        assert not any(found.has_changed() for _ in range(2 * ROUND))
        change(model[place])
        assert found.has_changed()


@pytest.mark.parametrize("place", [0, 24, 49])
def test_what_is_taken_away_or_done_past_torch_in_a_large_tree_is_seen_within_a_round(
    place: int,
) -> None:
    for change in (
        lambda block: delattr(block, "1"),
        lambda block: setattr(block[0], "bias", None),
        lambda block: block._modules.update({"1": block[0]}),
        lambda block: block[0]._parameters.pop("bias"),
    ):
        model = many()
        found = ModelMap(model)
        assert not any(found.has_changed() for _ in range(ROUND + place))
        change(model[place])
        assert any(found.has_changed() for _ in range(ROUND))


def test_training_changes_no_tree() -> None:
    model = ConvNet()
    found = ModelMap(model)
    model.eval().double().requires_grad_(requires_grad=False)
    model(torch.zeros(1, 1, 6, 6, dtype=torch.float64))
    assert not found.has_changed()


def test_it_holds_nothing_alive() -> None:
    model = Tied()
    found, gone = ModelMap(model), [weakref.ref(module) for module in model.modules()]
    found.slots("", below=True)
    assert found.paths_by_class
    del model
    gc.collect()
    assert [reference() for reference in gone] == [None] * len(gone)
    assert not found.modules
    assert not found.by_every_path
    assert found.has_changed()
    assert all(slot.get() is None for slot in found.parameters.values())
    assert found.slots("embed.weight", below=True) == ()


def test_what_lies_beside_its_compiled_wrapper_has_the_first_of_both_names() -> None:
    model = nn.Module()
    layer = nn.Linear(2, 2)
    model.add_module("first", torch.compile(layer, backend="eager"))  # type: ignore[arg-type]
    model.add_module("second", layer)
    found = ModelMap(model)
    assert [*found.modules] == ["", "first"]
    assert select(found, "second") == select(found, layer) == ("first",)
    assert found.by_every_path["first"] is model.first
    assert found.by_every_path["second"] is layer
