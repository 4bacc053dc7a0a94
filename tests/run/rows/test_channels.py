"""Vectors of every module's own length, from a model's tensors to the record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import QuantityError
from notebook_probe.quantities.catalogue.per_channel import (
    channels,
    input_channel_mean,
    input_channel_std,
)
from tests.models import ConvNet, Shared, floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

images = floats(5, 1, 6, 6)


class Inputs:
    """The inputs of some modules as float64 rows (sample, channel), step by step."""

    def __init__(self, model: nn.Module, axes: dict[str, int]) -> None:
        self.axes = axes
        self.calls: dict[str, list[Tensor]] = {name: [] for name in axes}
        for name in axes:
            model.get_submodule(name).register_forward_pre_hook(self._reader(name))

    def _reader(self, name: str) -> Any:
        return lambda module, given: self.calls[name].append(given[0].detach().clone())

    def take(self) -> dict[str, np.ndarray]:
        """The rows since the last time."""
        rows = {
            name: np.concatenate(
                [
                    np.moveaxis(x.double().numpy(), axis, -1).reshape(-1, x.shape[axis])
                    for x in self.calls[name]
                ]
            )
            for name, axis in self.axes.items()
        }
        for calls in self.calls.values():
            calls.clear()
        return rows


def test_each_channels_mean_and_spread_are_those_of_all_its_rows(watch: Watch) -> None:
    model = made(ConvNet)
    axes = {"conv1": 1, "norm1": 1, "conv2": 1, "head": -1}
    inputs = Inputs(model, axes)
    run = watch(model, probes=None)
    for quantity in ("InputMean", "input_channel_std"):
        run.attach(list(axes), quantity, "every(2)")
    optimizer = sgd(model)
    expected = []
    for step in range(5):
        train_step(model, optimizer, images(step))
        expected.append(inputs.take())
    run.close()
    opened = nbp.open_run(run.location)
    for source in (run, opened):
        for name in axes:
            mean, std = (source.series(name, f"input_channel_{kind}") for kind in ("mean", "std"))
            assert mean.dims == ("step", "index")
            assert mean.step.values.tolist() == [0, 2, 4]
            for place, step in enumerate((0, 2, 4)):
                rows = expected[step][name]
                np.testing.assert_allclose(mean[place], rows.mean(0), rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(std[place], rows.std(0, ddof=1), rtol=1e-5, atol=1e-6)
    assert opened.data.input_channel_mean.dims == ("element", "step")
    assert opened.data.input_channel_mean.attrs["needs"] == "input"


def test_calls_of_a_step_count_as_one_and_their_rows_together(watch: Watch) -> None:
    model = made(Shared)
    inputs = Inputs(model, {"twice": -1})
    run = watch(model, probes={"twice": ["input_channel_mean", "input_channel_std"]})
    train_step(model, sgd(model), floats(5, 4)(0))
    rows = inputs.take()["twice"]
    run.close()
    assert len(rows) == 10
    np.testing.assert_allclose(
        run.series("twice", "input_channel_mean")[0], rows.mean(0), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        run.series("twice", "input_channel_std")[0], rows.std(0, ddof=1), rtol=1e-5, atol=1e-6
    )


def test_a_quantity_of_ones_own_is_as_long_as_each_module_has_it(watch: Watch) -> None:
    @nbp.quantity(name="test_row_norms", axis=nbp.PER_CHANNEL, units="1")
    def row_norms(weight: Tensor) -> Tensor:
        """Norm of the weights of every output."""
        return weight.norm(dim=1) if weight.dim() > 1 else weight.abs()

    model = made(mlp)
    first = model.get_parameter("0.weight")
    weights = [first.detach().double().norm(dim=1).numpy()]
    run = watch(model, probes={"0": [row_norms, "weight_norm"], "2": [row_norms]})
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, floats(5, 4)(step))
        weights.append(first.detach().double().norm(dim=1).numpy())
    run.close()
    found = run.series("0", "test_row_norms")
    np.testing.assert_allclose(found[:, :8], weights[:3], rtol=1e-6)
    assert run.series("2", "test_row_norms").sizes["step"] == 3
    assert run.series("0", "weight_norm").sizes == {"step": 3}
    assert run.data.sizes["step"] == 3


def test_calls_kept_apart_have_vectors_of_their_own(watch: Watch) -> None:
    model = made(Shared)
    inputs = Inputs(model, {"twice": -1})
    run = watch(model, probes=None)
    run.attach("twice", "input_channel_mean", per_call=True)
    train_step(model, sgd(model), floats(5, 4)(0))
    rows = inputs.take()["twice"]
    run.close()
    for call in (0, 1):
        expected = rows[5 * call : 5 * call + 5].mean(0)
        found = run.series(f"twice[{call}]", "input_channel_mean")
        np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("returned", [1.0, torch.zeros(2, 2), torch.zeros(0), "text"])
def test_what_is_no_vector_is_told_and_training_goes_on(watch: Watch, returned: Any) -> None:
    @nbp.quantity(name="test_no_vector", axis=nbp.PER_CHANNEL)
    def no_vector(output: Tensor) -> Any:
        """Nothing of the kind."""
        return returned

    model = made(mlp)
    run = watch(model, probes={"0": [no_vector, "output_norm"]})
    train(model, sgd(model), floats(5, 4), range(3))
    run.controls.settle()
    (status,) = run.status().errors
    assert "a vector of real numbers" in status.error
    assert run.series("0", "output_norm").sizes == {"step": 3}


def test_one_row_has_a_mean_and_no_spread() -> None:
    found = channels(torch.tensor([[1.0, 2.0]]), nn.Linear(2, 2))
    assert input_channel_mean(found).tolist() == [1, 2]
    assert input_channel_std(found).isnan().all()
    assert (
        input_channel_mean(channels(torch.zeros(0, 3), nn.Linear(3, 1))).isnan().tolist()
        == [True] * 3
    )


def test_calls_of_different_width_have_no_common_mean() -> None:
    narrow, wide = (channels(torch.zeros(2, n)) for n in (2, 3))
    with pytest.raises(QuantityError, match="with 2 and with 3 channels"):
        narrow.merge(wide)


def test_the_open_step_is_part_of_what_a_live_run_shows(watch: Watch) -> None:
    model = made(ConvNet)
    inputs = Inputs(model, {"conv1": 1})
    run = watch(model, probes={"conv1": ["input_channel_mean", "output_norm"]})
    with pytest.raises(nbp.UnknownNameError, match="no input_channel_mean of module 'conv1'"):
        run.series("conv1", "input_channel_mean")
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, images(step))
        rows = inputs.take()["conv1"]
        mean = run.series("conv1", "input_channel_mean")
        assert mean.step.values.tolist() == [*range(step + 1)]
        assert mean.step.equals(run.series("conv1", "output_norm").step)
        np.testing.assert_allclose(mean[step], rows.mean(0), rtol=1e-5, atol=1e-6)
        assert run.data.input_channel_mean.sizes["step"] == step + 1


@pytest.mark.parametrize("wanted", ["0", ["0"], ["0", "2"], slice("0", "1")])
def test_the_dataset_selects_channels_by_their_module(watch: Watch, wanted: Any) -> None:
    model = made(mlp)
    run = watch(model, probes={"*": ["input_channel_mean", "input_norm"]})
    train(model, sgd(model), floats(5, 4), range(3))
    picked = run.data.sel(module=wanted)
    names = {"0"} if wanted in ("0", ["0"]) else {"0", "2"} if wanted == ["0", "2"] else {"0", "1"}
    assert {*picked.module_of_element.values.tolist()} == names
    for name in names:
        own = run.series(name, "input_channel_mean")
        mine = picked.input_channel_mean.to_numpy()[picked.module_of_element.values == name]
        np.testing.assert_array_equal(mine.T, own)
    assert picked.input_norm.identical(run.data.input_norm.sel(module=wanted))
    assert run.data.sel(step=1).sizes["element"] == run.data.sizes["element"]
    late = run.data.sel(module="0", step=[1, 2], drop=True)
    np.testing.assert_array_equal(
        late.input_channel_mean.T, run.series("0", "input_channel_mean")[1:]
    )


@pytest.mark.parametrize("wanted", ["0", ["0"], ["2", "0"], slice("0", "1")])
def test_a_quantity_of_channels_selects_them_by_their_module(watch: Watch, wanted: Any) -> None:
    model = made(mlp)
    run = watch(model, probes={"*": ["input_channel_mean", "input_norm"]})
    train(model, sgd(model), floats(5, 4), range(3))
    data = run.data
    picked = data.input_channel_mean.sel(module=wanted)
    assert picked.identical(data.sel(module=wanted).input_channel_mean)
    late = data.input_channel_mean.sel(module=wanted, step=[1, 2], drop=True)
    np.testing.assert_array_equal(late, picked[:, 1:])
    doubled = (2 * data["input_channel_mean"]).sel({"module": wanted}).mean("step")
    np.testing.assert_allclose(doubled, 2 * picked.mean("step"))


def test_one_module_of_channels_is_called_by_its_name(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"2": ["input_channel_mean"]})
    train(model, sgd(model), floats(5, 4), range(3))
    means = run.data.input_channel_mean
    picked = means.sel(module="2")
    assert picked.module.item() == "2"
    np.testing.assert_array_equal(picked.T, run.series("2", "input_channel_mean"))
    assert means.sel(step=1).sizes["element"] == picked.sizes["element"]
    with pytest.raises(KeyError, match="not all values found in index 'module'"):
        means.sel(module="no_such")
    with pytest.raises(KeyError, match="module"):
        means.mean("element").sel(module="2")
