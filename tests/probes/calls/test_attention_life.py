"""Hearing of attention changes nothing, ends with the call, and outlives what goes wrong in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from tests.probes.calls.attentive import QUANTITIES, agree, batch, by_hand, eager, products, train
from tests.probes.parity import bits, differing, everything

pytestmark = pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor that is not a leaf",
    "ignore:.torch.jit.script_method. is deprecated",
)
sdpa = F.scaled_dot_product_attention


def transformer() -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 24)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "fused": partial(by_hand, partial(sdpa, is_causal=True, dropout_p=0.2)),
    "eager": partial(by_hand, eager),
    "torch's own": transformer,
}


@pytest.mark.parametrize("kind", MODELS)
def test_training_is_the_same_bit_for_bit(kind: str, tmp_path: Path) -> None:
    plain, watched = MODELS[kind](), MODELS[kind]()
    torch.manual_seed(1)
    train(plain, 3)
    expected = everything(plain)
    with nbp.watch(watched, store=tmp_path / "run.zarr", probes={"*": list(QUANTITIES)}) as run:
        torch.manual_seed(1)
        train(watched, 3)
        assert not run.status().errors
    assert differing(everything(watched), expected) == []
    assert float(run.data.attn_entropy.notnull().sum()) >= 3


class Interrupting(nn.Module):
    """Raises in the middle of a call, after its attention, when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.error = by_hand(sdpa), None

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner[1](x)
        if self.error is not None:
            raise self.error
        return found


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError()])
def test_what_an_interrupt_leaves_is_deaf_and_goes(error: Any, tmp_path: Path) -> None:
    model = nn.ModuleDict({"one": Interrupting(), "two": by_hand(sdpa)})
    one: Any = model["one"]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"one": list(QUANTITIES)}) as run:
        one.error = error
        with pytest.raises(type(error)):
            one(batch())
        assert len(_get_current_function_mode_stack()) == 1
        one.error = None
        model["two"](3 * batch())  # another module's attention
        one(batch()).sum().backward()
        optimizer.step()
        assert _get_current_function_mode_stack() == []
        assert not run.status().errors
    # The attention before the error was seen, as are the tensors of a call that was interrupted.
    found = {name: run.series("one", name).values[0] for name in QUANTITIES}
    agree(found, products(nn.Sequential(nn.Identity(), by_hand(sdpa)[1])))


def test_what_is_left_goes_with_its_step(tmp_path: Path) -> None:
    model = Interrupting()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probes = {"": [["attn_entropy", "every(2)"]]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes):
        model.error = KeyboardInterrupt()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            model(batch())
        model.error = None
        for _ in range(2):
            model.inner(batch()).sum().backward()
            optimizer.step()
        assert _get_current_function_mode_stack() == []


def test_a_module_that_calls_itself_hears_everything_once(tmp_path: Path) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = by_hand(sdpa)

        def forward(self, x: Tensor, again: bool = True) -> Tensor:
            found: Tensor = self.inner[1](x)
            return self(x, again=False) + found if again else found

    model = Twice()
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"": list(QUANTITIES)}) as run:
        train(model)
    found = {name: run.series("", name).values[0] for name in QUANTITIES}
    assert run.data.calls.sel(module="(root)") == 2
    agree(found, products(nn.Sequential(nn.Identity(), by_hand(sdpa)[1])))


def test_a_module_and_what_lies_below_it_both_hear(tmp_path: Path) -> None:
    model = nn.Sequential(by_hand(sdpa))
    with (
        nbp.watch(model, store=tmp_path / "a.zarr", probes={"*": ["attn_entropy"]}) as run,
    ):
        train(model)
    entropy = run.data.attn_entropy.isel(step=0)
    assert float(entropy.sel(module="0.1")) == float(entropy.sel(module="0")) > 0


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_recomputation_is_no_call(use_reentrant: bool, tmp_path: Path) -> None:
    class Saved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = by_hand(sdpa)

        def forward(self, x: Tensor) -> Tensor:
            h = self.inner[0](x)
            found: Tensor = checkpoint(self.inner[1], h, use_reentrant=use_reentrant)
            return self.inner[2](found)

    model = Saved()
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"inner.1": [*QUANTITIES]}) as run:
        train(model, 2)
        assert not run.status().errors
    found = {name: run.series("inner.1", name).values[0] for name in QUANTITIES}
    agree(found, products(by_hand(sdpa)))


def test_other_modes_of_torch_s_stay_in_their_order(tmp_path: Path) -> None:
    model = by_hand(sdpa)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"*": ["attn_entropy"]}) as run:
        with torch.device("cpu"):
            before = _get_current_function_mode_stack()
            train(model, 2)
            assert _get_current_function_mode_stack() == before
        assert not run.status().errors
    assert _get_current_function_mode_stack() == []


def test_under_autocast_it_is_measured_in_full_precision(tmp_path: Path) -> None:
    model, twin = transformer(), transformer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"*": ["attn_entropy"]}) as run:
        with torch.autocast("cpu", torch.bfloat16):
            torch.manual_seed(1)
            out = model(batch())
        out.float().square().mean().backward()
        optimizer.step()
        assert not run.status().errors
    assert float(run.data.attn_entropy.sel(module="layers.0.self_attn")[0]) > 0
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16):
        assert bits(twin(batch())) == bits(out)


@pytest.mark.slow
def test_a_part_that_is_compiled_inside_goes_on_compiled(tmp_path: Path) -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = by_hand(sdpa)
            self.part = torch.compile(nn.Linear(16, 16), backend="eager")

        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self.part(self.inner[1](x))
            return found

    torch.manual_seed(0)
    model = Mixed()
    probes = {"": [["attn_entropy", "every(2)"]]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes) as run:
        train(model, 4)
        assert not run.status().errors
    assert int(run.data.attn_entropy.notnull().sum()) == 2


def test_two_runs_of_one_model_hear_the_same(tmp_path: Path) -> None:
    model = by_hand(sdpa)
    probes = {"1": list(QUANTITIES)}
    with (
        nbp.watch(model, store=tmp_path / "a.zarr", probes=probes) as one,
        nbp.watch(model, store=tmp_path / "b.zarr", probes=probes) as other,
    ):
        train(model, 2)
        assert not [*one.status().errors, *other.status().errors]
    for run in (one, other):
        agree(
            {name: run.series("1", name).values[0] for name in QUANTITIES},
            products(by_hand(sdpa)),
        )


def test_what_a_quantity_computes_is_not_the_model_s(tmp_path: Path) -> None:
    def softened(attention: Any) -> Tensor:
        return next(attention.pieces()).softmax(-1).amax()

    def squashed(output: Tensor) -> Tensor:
        return output.softmax(-1).amax()

    model = nn.Sequential(by_hand(sdpa))
    probes = {"": list(QUANTITIES), "0.1": [softened, squashed]}
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=probes) as run:
        train(model)
        assert not run.status().errors
    found = {name: run.series("", name).values[0] for name in QUANTITIES}
    agree(found, products(by_hand(sdpa)))


def test_detaching_in_the_middle_of_a_call_leaves_nothing(tmp_path: Path) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if run.probes():
            run.detach("1")
        return sdpa(q, k, v)

    model = by_hand(attend)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"1": ["attn_entropy"]}) as run:
        train(model, 3)
        assert _get_current_function_mode_stack() == []


def test_attention_under_a_transform_is_left_alone(tmp_path: Path) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found: Tensor = torch.vmap(sdpa)(q, k, v)
        return found

    model = by_hand(attend)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes={"1": ["attn_entropy"]}) as run:
        train(model, 2)
        [probe] = run.status().probes
    assert (probe.n_values, probe.n_errors) == (0, 0)
