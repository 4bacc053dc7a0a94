"""Which modules are meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from notebook_probe.errors import UnknownNameError
from notebook_probe.model import selectors
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import Where, standard_place
from tests.models import ConvNet, Encoder, Shared, Tagger, Tied, mlp


def select(model: nn.Module, where: Where) -> tuple[str, ...]:
    return selectors.select(ModelMap(model), where)


def default_places(model: nn.Module) -> tuple[str, ...]:
    return selectors.default_places(ModelMap(model))


def nested() -> nn.Module:
    return nn.Sequential(mlp(), nn.ModuleList([mlp(), nn.Identity()]), nn.Tanh())


def test_paths_come_in_definition_order() -> None:
    assert select(ConvNet(), "*") == (
        "conv1",
        "norm1",
        "conv2",
        "norm2",
        "relu",
        "pool",
        "head",
    )


@given(path=st.sampled_from([path for path, _ in nested().named_modules()]))
def test_every_path_selects_itself(path: str) -> None:
    assert select(nested(), path) == (path,)


@given(path=st.sampled_from([path for path, _ in nested().named_parameters()]))
def test_every_parameter_path_selects_itself(path: str) -> None:
    assert select(nested(), path) == (path,)


def test_a_path_comes_before_a_class_name_and_a_class_name_before_a_glob() -> None:
    model = nn.Module()
    model.add_module("Linear", nn.Tanh())
    model.add_module("other", nn.Linear(2, 2))
    assert select(model, "Linear") == ("Linear",)
    assert select(model, "Tanh") == ("Linear",)
    assert select(model, "L*") == ("Linear",)


def test_an_exact_class_name_comes_before_its_subclasses() -> None:
    class Special(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(2, 2), Special(2, 2))
    assert select(model, "Linear") == ("0",)
    assert select(model, nn.Linear) == ("0", "1")
    assert select(model, "Special") == ("1",)
    assert select(nn.Sequential(Special(2, 2)), "Linear") == ("0",)


def test_a_glob_means_modules_and_parameters_only_where_no_module_matches() -> None:
    assert select(nested(), "1.0.*") == ("1.0.0", "1.0.1", "1.0.2")
    assert select(nested(), "1.0.0.*") == ("1.0.0.weight", "1.0.0.bias")
    assert select(nested(), "*.bias") == ("0.0.bias", "0.2.bias", "1.0.0.bias", "1.0.2.bias")


def test_a_glob_never_means_the_root() -> None:
    assert "" not in select(nested(), "*")


def test_a_callable_is_asked_for_every_module() -> None:
    asked: list[str] = []

    def deep(path: str, module: nn.Module) -> bool:
        asked.append(path)
        return path.count(".") == 2

    model = nested()
    assert select(model, deep) == ("1.0.0", "1.0.1", "1.0.2")
    assert asked == [path for path, _ in model.named_modules()]


def test_many_selections_are_one_without_doubles() -> None:
    assert select(ConvNet(), ["head", "conv*", nn.Linear, "conv1"]) == ("head", "conv1", "conv2")


def test_every_name_of_a_shared_module_means_the_first() -> None:
    model = Shared()
    model.again = model.twice
    assert select(model, "again") == ("twice",)
    assert select(model, "again.bias") == ("twice.bias",)
    assert select(Tied(), "decoder.weight") == ("embed.weight",)


@pytest.mark.parametrize("root", ["", "(root)", "Sequential"])
def test_the_root_is_selected_by_its_names(root: str) -> None:
    assert "" in select(mlp(), root)
    assert standard_place("") == "(root)"
    assert standard_place("head") == "head"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("conv3", r"no module matches 'conv3' in ConvNet \(7 modules\); close: 'conv2', 'conv1'"),
        ("Conv3d", "close: 'Conv2d'"),
        ("hed.weight", "no module matches 'hed.weight'"),
        (nn.LSTM, "no module matches LSTM"),
        (lambda path, module: False, "no module matches <lambda>"),
        (nn.Linear(2, 2), "this Linear is no module of ConvNet; other ones are 'head'"),
        (nn.Tanh(), "this Tanh is no module of ConvNet$"),
        (["head", "conv3"], "no module matches 'conv3'"),
        (3.5, "3.5 selects nothing; allowed: a path, glob"),
        (None, "None selects nothing"),
    ],
)
def test_what_matches_nothing_raises_with_what_is_there(where: Any, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        select(ConvNet(), where)


@pytest.mark.parametrize(
    ("build", "places"),
    [
        (mlp, ["0", "1", "2"]),
        (ConvNet, ["conv1", "norm1", "conv2", "norm2", "relu", "head"]),
        (Tagger, ["embed", "lstm", "head"]),
        (Tied, ["embed", "decoder"]),
        (nn.Identity, []),
        (lambda: nn.Linear(2, 2), [""]),
    ],
)
def test_defaults_are_what_has_weights_or_activates(build: Any, places: list[str]) -> None:
    assert list(default_places(build())) == places


def test_defaults_leave_out_the_inside_of_a_parametrization() -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)))
    assert default_places(model) == ("0",)


def test_attention_is_a_default_place_and_so_are_the_layers_round_it() -> None:
    places = default_places(Encoder())
    assert {"layer.self_attn", "layer.linear1", "layer.norm2", "head"} <= set(places)
    assert "layer.dropout" not in places
