"""Histograms, spectra and vectors of one's own, from a model's tensors to the record."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.axis import Axis
from notebook_probe.errors import NotApplicableError, QuantityError
from tests.models import (
    CASES,
    Case,
    ConvNet,
    Shared,
    floats,
    loss_of,
    made,
    mlp,
    sgd,
    train,
    train_step,
)
from tests.run.conftest import Watch
from tests.run.oracle import Numbers, Twin, numbers

HISTOGRAMS = ["weight_histogram", "grad_histogram", "output_histogram", "grad_output_histogram"]
LOG_HISTOGRAMS = [name.replace("_histogram", "_log_histogram") for name in HISTOGRAMS]
SPECTRA = ["input_cov_max_eig", "input_cov_stable_rank", "input_cov_condition"]
SIDES = Axis("side", {"side": (0.0, 1.0)}, group="sides")

batch = floats(5, 4)


def equal_bins(values: Numbers) -> tuple[list[float], float]:
    """Counts in the documented bins, and their width."""
    finite = values[np.isfinite(values)]
    width = 2.0 ** (math.floor(math.log2(np.abs(finite).max())) - 4)
    found, _ = np.histogram(finite, np.arange(-32, 33) * width)
    return [*found, values.size - finite.size], width


def counts(values: Numbers) -> list[float]:
    """In the documented bins of powers of four."""
    finite = values[np.isfinite(values)]
    edges = [0.0, *(2.0 ** (2 * k - 45) for k in range(1, 31)), math.inf]
    below, _ = np.histogram(-finite[finite < 0], edges)
    above, _ = np.histogram(finite[finite > 0], edges)
    return [*below[::-1], (finite == 0).sum(), *above, values.size - finite.size]


def eigenvalues(calls: Sequence[Tensor], axis: int) -> Numbers:
    """Of the covariance of all calls' samples."""
    rows = np.concatenate(
        [np.moveaxis(t.double().numpy(), axis, -1).reshape(-1, t.shape[axis]) for t in calls]
    )
    singular = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    found = np.zeros(rows.shape[1])
    found[: len(singular)] = singular**2 / (len(rows) - 1)
    return found


@pytest.fixture
def sides() -> nbp.Quantity:
    @nbp.quantity(name="test_sides", units="m", axis=SIDES, combine="max")
    def sides(output: Tensor) -> Tensor:
        """Least and greatest output."""
        return torch.stack([output.min(), output.max()])

    return sides


def train_twins(model: nn.Module, twin: Twin, micro_batches: int) -> None:
    optimizer = sgd(model)
    for step in range(3):
        batches = [batch(micro_batches * step + i) for i in range(micro_batches)]
        twin.step(batches)
        optimizer.zero_grad()
        for one in batches:
            loss_of(model(one)).backward()
        optimizer.step()


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_histograms_count_all_elements_of_a_step(micro_batches: int, watch: Watch) -> None:
    model, other = made(mlp), made(mlp)
    twin = Twin(other, sgd(other))
    run = watch(model, probes=None)
    run.attach(["0", "2"], [*HISTOGRAMS, *LOG_HISTOGRAMS])
    train_twins(model, twin, micro_batches)
    run.controls.settle()
    data = run.data.sel(step=2).load()
    for path in ("0", "2"):
        weight, bias = f"{path}.weight", f"{path}.bias"
        wanted = {
            "weight_histogram": numbers([twin.before[weight]]),
            "grad_histogram": numbers([twin.gradients[weight], twin.gradients[bias]]),
            "output_histogram": numbers(twin.outputs[path]),
            "grad_output_histogram": numbers(twin.output_grads[path]),
        }
        for name, values in wanted.items():
            found, width = equal_bins(values)
            assert data[name].sel(module=path).values.tolist() == found, (name, path)
            assert data[f"{name}_width"].sel(module=path).item() == width
            logs = data[name.replace("_histogram", "_log_histogram")].sel(module=path)
            assert logs.values.tolist() == counts(values), (name, path)
    assert data.calls.sel(module="0").item() == micro_batches
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True)
    )


def test_a_histogram_has_its_bins_beside_it(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", "weight_histogram", 2)
    run.attach("0", "weight_norm")
    train(model, sgd(model), batch, range(4))
    data = run.data
    assert data.weight_histogram.dims == ("module", "step", "linear_bin")
    assert data.weight_norm.dims == data.weight_histogram_width.dims == ("module", "step")
    assert data.weight_histogram.sel(module="0", step=1).isnull().all()
    assert data.linear_bin_lo.dims == ("linear_bin",)
    series = run.series("0", "weight_histogram")
    assert series.sum("linear_bin").values.tolist() == [32, 32]
    assert series.step.values.tolist() == [0, 2]
    assert set(run.to_xarray("tree").children) == {"every_1", "linear_hist"}, (
        "no empty stream of numbers"
    )
    run.close()
    stored = xr.open_zarr(run.location, group="linear_hist/every_2", chunks=None)
    assert stored.weight_histogram.sel(module="0")[:, :65].sum("linear_bin").values.tolist() == [
        32,
        32,
    ]
    opened = nbp.open_run(run.location).data
    assert np.array_equal(opened.weight_histogram, data.weight_histogram, equal_nan=True)


def test_every_row_of_a_histogram_tells_its_edges_while_they_change(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", "weight_histogram")
    kept = []
    for step in range(4):
        with torch.no_grad():
            model.get_parameter("0.weight").mul_(3.0)
        kept.append(model.get_parameter("0.weight").detach().double().numpy().ravel().copy())
        train_step(model, sgd(model), batch(step))
    run.close()
    for source in (run, nbp.open_run(run.location)):
        series = source.series("0", "weight_histogram")
        assert len(set(series.linear_bin_width.values.tolist())) > 2
        lower = (series.linear_bin_lo * series.linear_bin_width).transpose("step", ...).values
        upper = (series.linear_bin_hi * series.linear_bin_width).transpose("step", ...).values
        for row, values in enumerate(kept):
            want, _ = np.histogram(values, [*lower[row, :64], upper[row, 63]])
            assert series.values[row].tolist() == [*want, 0]
        widths = source.series("0", "weight_histogram_width")
        assert widths.values.tolist() == series.linear_bin_width.values.tolist()
        table = source.to_dataframe("weight_histogram*", "0")
        told = table[table.quantity == "weight_histogram_width"]
        assert told.value.tolist() == widths.values.tolist()
        only = source.data.weight_histogram.sel(module="0", step=2, linear_bin=[0.5, -0.5])
        assert only.values.tolist() == series.values[2][[32, 31]].tolist()


def test_the_open_steps_vectors_can_be_read(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach(["0", "2"], HISTOGRAMS)
    train_step(model, sgd(model), batch(0))
    assert run.data.output_histogram.sel(step=0, module="0").sum().item() == 40
    assert run.series("2", "grad_output_histogram").sum().item() == 10
    assert run.vectors["linear_hist/every_1"].n_rows == 0, "not recorded yet"
    whole = run.to_xarray("tree")["linear_hist/every_1"].to_dataset()
    assert whole.sizes == {"step": 1, "module": 2, "linear_bin": 66}


@pytest.mark.parametrize("name", CASES)
def test_vectors_and_spectra_change_no_training(name: str, watch: Watch) -> None:
    case: Case = CASES[name]
    runs: list[dict[str, Tensor]] = []
    for watched in (False, True):
        model = made(case.build)
        run = watch(model, probes=None) if watched else None
        if run is not None:
            run.attach("*", [*HISTOGRAMS, *SPECTRA])
        train(model, sgd(model), case.batch, range(3))
        runs.append({**model.state_dict(), "rng": torch.get_rng_state()})
        if run is not None:
            run.controls.settle()
            assert run.status().errors == ()
            assert run.data.weight_histogram.count() > 0
    assert all(torch.equal(runs[0][key], value) for key, value in runs[1].items())


def test_what_is_broken_is_counted_and_ends_nothing(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", [*HISTOGRAMS, *LOG_HISTOGRAMS, *SPECTRA])
    with torch.no_grad():
        model.get_parameter("0.weight")[0] = torch.tensor([math.nan, math.inf, -math.inf, 0.0])
    train(model, sgd(model), batch, range(4))
    run.controls.settle()
    assert run.status().errors == ()
    weights = run.data.weight_histogram.sel(module="0", step=0)
    assert weights.sel(linear_bin=math.inf).item() == 3
    assert weights.sum().item() == 32
    first = run.data.weight_log_histogram.sel(module="0", step=0)
    assert first.sel(bin=math.inf).item() == 3
    assert first.sel(bin=0.0).item() == 1
    assert run.series("0", "weight_histogram").sizes["step"] == 4


def test_spectra_are_those_of_the_inputs(watch: Watch) -> None:
    images = floats(6, 1, 6, 6)
    model, other = made(ConvNet), made(ConvNet)
    twin = Twin(other, sgd(other))
    run = watch(model, probes=None)
    run.attach(["conv2", "norm2", "head"], SPECTRA)
    optimizer = sgd(model)
    for step in range(2):
        other.train()
        for kept in (twin.inputs, twin.outputs):
            kept.clear()
        train_step(other, twin.optimizer, images(step))
        train_step(model, optimizer, images(step))
    run.controls.settle()
    data = run.data.sel(step=1)
    for path, axis in (("conv2", 1), ("norm2", 1), ("head", 1)):
        wanted = eigenvalues(twin.inputs[path], axis)
        found = data.sel(module=path)
        assert float(found.input_cov_max_eig) == pytest.approx(wanted[0], rel=1e-5)
        rank = wanted.sum() / wanted[0]
        assert float(found.input_cov_stable_rank) == pytest.approx(rank, rel=1e-5)
        condition = math.inf if path == "head" else wanted[0] / wanted[-1]
        assert float(found.input_cov_condition) == pytest.approx(condition, rel=1e-3)


def test_the_calls_of_a_step_have_one_spectrum(watch: Watch) -> None:
    model, other = made(Shared), made(Shared)
    twin = Twin(other, sgd(other))
    path = next(p for p, m in model.named_modules() if isinstance(m, nn.Linear))
    run = watch(model, probes=None)
    run.attach(path, SPECTRA)
    train_step(other, twin.optimizer, batch(0))
    train_step(model, sgd(model), batch(0))
    run.controls.settle()
    assert len(twin.inputs[path]) > 1
    wanted = eigenvalues(twin.inputs[path], 1)
    assert float(run.series(path, "input_cov_max_eig")[0]) == pytest.approx(wanted[0], rel=1e-5)


def test_a_vector_of_ones_own_is_combined_place_by_place(sides: nbp.Quantity, watch: Watch) -> None:
    model, other = made(mlp), made(mlp)
    twin = Twin(other, sgd(other))
    run = watch(model, probes=None)
    run.attach("2", sides)
    train_twins(model, twin, 3)
    run.controls.settle()
    outputs = [output.numpy() for output in twin.outputs["2"]]
    wanted = [max(output.min() for output in outputs), max(output.max() for output in outputs)]
    found = run.series("2", "test_sides")
    assert found.sel(step=2).values.tolist() == pytest.approx(wanted, rel=1e-6)
    assert found.side.values.tolist() == [0, 1]
    assert found.attrs["units"] == "m"


def test_each_call_and_each_phase_may_have_a_vector(sides: nbp.Quantity, watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("2", sides, per_call=True)
    run.attach("2", [sides, "output_histogram"], phase="eval")
    optimizer = sgd(model)
    optimizer.zero_grad()
    for i in range(2):
        loss_of(model(batch(i))).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        seen = model(batch(7))
    model.train()
    train_step(model, optimizer, batch(8))
    run.close()
    data = run.data
    assert {"2[0]", "2[1]"} <= set(data.module.values.tolist())
    assert data.test_sides.sel(step=0, module="2[1]").notnull().all()
    found = data.eval_test_sides.sel(module="2").dropna("step").isel(step=0)
    assert found.values.tolist() == pytest.approx([float(seen.min()), float(seen.max())])
    histogram = run.series("2", "eval_output_histogram")[0]
    assert histogram.values.tolist() == equal_bins(numbers([seen]))[0]


WRONG: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "a number": (lambda output: output.sum(), r"Tensor of shape \(\) and torch.float32"),
    "too long": (lambda output: output[0, :2].repeat(2), r"Tensor of shape \(4,\)"),
    "complex": (lambda output: output[0, :2] * 1j, "and torch.complex64"),
    "text": (lambda output: ["a", "b"], r"list of shape \(2,\) and <U1"),
    "none": (lambda output: None, r"NoneType of shape \(\) and object"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_vector_of_another_shape_is_the_quantitys_error(kind: str, watch: Watch) -> None:
    function, message = WRONG[kind]

    @nbp.quantity(name=f"test_wrong_{kind.replace(' ', '_')}", axis=SIDES)
    def wrong(output: Tensor) -> Any:
        return function(output)

    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("2", wrong)
    train(model, sgd(model), batch, range(2))
    run.controls.settle()
    (probe,) = run.status().errors
    assert "2 real numbers along 'side' are expected" in probe.error
    with pytest.raises(QuantityError, match=message):
        wrong.value_of(function(torch.ones(3, 2)))


@pytest.mark.parametrize(
    "given", [(1, 2), np.array([1, 2], np.int8), torch.tensor([1, 2]).bfloat16(), [True, False]]
)
def test_a_vector_may_be_given_in_any_real_type(given: Any, sides: nbp.Quantity) -> None:
    assert np.array_equal(sides.value_of(given), [float(given[0]), float(given[1])])


def test_a_vector_is_kept_as_it_was_returned(sides: nbp.Quantity) -> None:
    for given in (torch.zeros(2), np.zeros(2)):
        found = sides.value_of(given)
        given += 1
        assert np.array_equal(found, [0, 0])


def test_a_taken_name_is_refused_where_it_is_attached(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.log(bin=3.0)
    with pytest.raises((QuantityError, NotApplicableError), match="'bin' is a number"):
        run.attach("0", "weight_log_histogram")
    train(model, sgd(model), batch, range(2))
    assert run.data["bin"].dims == ("module", "step")
