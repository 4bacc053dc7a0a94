"""Parts of a model that are compiled alone keep their names, and are measured from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.models import floats, made, sgd, train
from tests.probes.parameters.optimizer_oracles import PARAMETER, probes_everywhere
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

# What torch itself does when it compiles a part whose input has a history.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

batch = floats(5, 4)
QUANTITIES = ["input_norm", "output_norm", "output_grad_norm", "input_cov_max_eig"]


def nested() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 8)), nn.Linear(8, 2)
    )


def layer(model: Any) -> None:
    model[0] = torch.compile(model[0], backend="eager")


def block(model: Any) -> None:
    model[1] = torch.compile(model[1], backend="eager")


def layer_in_a_block(model: Any) -> None:
    model[1][1] = torch.compile(model[1][1], backend="eager")


PARTS: list[tuple[Callable[[Any], None], str]] = [
    (layer, "0"),
    (block, "1"),
    (layer_in_a_block, "1.1"),
]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "watched", "training"])
@pytest.mark.parametrize(("compile_part", "place"), PARTS)
def test_a_part_that_is_compiled_is_recorded_under_its_own_name(
    compile_part: Callable[[Any], None], place: str, moment: str, watch: Watch
) -> None:
    """Its calls too: they are seen at the wrapper, outside of what is compiled."""
    plain, model = made(nested), made(nested)
    wanted = watch(plain, probes=probes_everywhere(plain) | {place: QUANTITIES})
    train(plain, sgd(plain), batch, range(4))
    probes = probes_everywhere(model) | {place: QUANTITIES}
    if moment == "before":
        compile_part(model)
    run = watch(model, probes=probes)
    if moment == "watched":
        compile_part(model)
    optimizer = sgd(model)
    for step in range(4):
        if step == 2 and moment == "training":
            compile_part(model)
        train(model, optimizer, batch, [step])
    left, right = everything(plain), everything(model)
    assert differing(left, {name.replace("_orig_mod.", ""): v for name, v in right.items()}) == []
    assert run.modules == wanted.modules
    names = [name for name, _ in plain.named_parameters()]
    for where, quantities in [(place, QUANTITIES), *((name, PARAMETER) for name in names)]:
        for quantity in quantities:
            np.testing.assert_array_equal(
                run.series(where, quantity),
                wanted.series(where, quantity),
                err_msg=f"{quantity} at {where}",
            )
    assert not run.status().errors


def test_every_way_to_name_a_compiled_part_finds_it(watch: Watch) -> None:
    model = made(nested)
    first: Any = model[0]
    block(model)
    layer(model)
    run = watch(model, probes=None)
    wrapped: Any = model[0]
    asked: list[Any] = ["0", nn.Linear, "Linear", first, wrapped, "[0]"]
    for where in asked:
        handle = run.attach(where, "weight_norm")
        assert handle.probes[0].place == "0"
        handle.remove()
    assert [probe.place for probe in run.attach("1.*", "output_norm").probes] == ["1.0", "1.1"]
    assert [probe.place for probe in run.attach("1.1.bias", "grad_norm").probes] == ["1.1.bias"]
    assert [row.class_name for row in run.modules] == [
        "Sequential", "Linear", "Sequential", "ReLU", "Linear", "Linear"
    ]  # fmt: skip
    assert not [row.name for row in run.modules if "_orig_mod" in row.name]


def test_what_lies_within_a_compiled_part_says_why_it_is_silent(watch: Watch) -> None:
    model = made(nested)
    block(model)
    run = watch(
        model,
        probes={"1": ["output_norm"], "1.1": ["output_norm", "weight_norm"]},
        on_compiled="skip",
    )
    train(model, sgd(model), batch, range(3))
    run.controls.settle()
    notes = {(one.module, one.quantity): one.note for one in run.probes()}
    assert "compiled" in notes["1.1", "output_norm"]
    assert notes["1", "output_norm"] == notes["1.1", "weight_norm"] == ""


def test_a_function_of_the_module_is_given_the_part_and_not_its_wrapper(watch: Watch) -> None:
    def width(module: nn.Module, output: Tensor) -> float:
        assert isinstance(module, nn.Linear)
        return float(module.out_features)

    def width_back(module: nn.Module, grad_output: Tensor) -> float:
        return width(module, grad_output)

    def width_in(module: nn.Module, input: Tensor) -> float:
        return width(module, input)

    model = made(nested)
    layer(model)
    run = watch(model, probes={"0": [width, width_back, width_in]})
    train(model, sgd(model), batch, range(2))
    for name in ("width", "width_back", "width_in"):
        assert run.series("0", name).values.tolist() == [8.0, 8.0], run.status()
