"""Shared reductions of the user's own in a run: once per step and tensor, and no harm done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.quantities import quantities
from notebook_probe.quantities.reduce.reductions import parts
from tests.models import equal, floats, made, mlp, sgd, train
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.run.accelerator import Accelerator, moved, on_device, waits
from tests.run.conftest import Watch

batch = floats(5, 4)
STEPS = range(3)


class Twice(nn.Module):
    """Calls one layer twice; what it was given is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.seen: list[list[Any]] = []

    def forward(self, x: Tensor) -> Tensor:
        first = self.layer(x)
        self.seen.append([one.detach().double().numpy() for one in (x, first)])
        return self.layer(first)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in (parts, quantities):  # what asks for a reduction goes with it
        monkeypatch.setattr(registry, "_members", {**registry._members})


def named(name: str, function: Callable[..., Any], **options: Any) -> nbp.Quantity:
    made: nbp.Quantity = nbp.quantity(name=f"test_{name}", **options)(function)
    return made


def test_several_quantities_share_it_once_per_step_and_tensor(watch: Watch) -> None:
    shapes: list[tuple[int, ...]] = []
    worked: list[int] = []

    @nbp.reduction
    def own_sizes(tensor: Tensor, module: nn.Module) -> Tensor:
        assert isinstance(module, nn.Linear)
        shapes.append(tuple(tensor.shape))
        return tensor.norm(dim=0)

    @nbp.reduction
    def own_share(own_sizes: Tensor) -> Tensor:
        worked.append(len(own_sizes))
        return own_sizes / own_sizes.sum()

    quantities = [
        named("largest", lambda output_own_share: output_own_share.max()),
        named("smallest", lambda output_own_share: output_own_share.min()),
        named("total", lambda output_own_sizes: output_own_sizes.sum()),
    ]
    model = made(mlp)
    run = watch(model, probes={"0": quantities, "2": quantities})
    outputs = []
    handle = model.get_submodule("0").register_forward_hook(
        lambda module, given, output: outputs.append(output.detach().double().numpy())
    )
    train(model, sgd(model), batch, STEPS)
    handle.remove()
    run.close()
    found = run.series("0", "test_largest").values
    sizes = np.array([np.linalg.norm(one, axis=0) for one in outputs])
    np.testing.assert_allclose(found, (sizes / sizes.sum(1, keepdims=True)).max(1), rtol=1e-6)
    np.testing.assert_allclose(run.series("0", "test_total").values, sizes.sum(1), rtol=1e-6)
    assert len(shapes) == len(worked) == 2 * len(STEPS), "one tensor at each of two layers"


def test_our_covariance_is_there_for_everybody_and_pooled_exactly(watch: Watch) -> None:
    trace = named("trace", lambda input_covariance: input_covariance.trace())
    first = named("first", lambda input_cov_eigs: input_cov_eigs[0])
    both = named(
        "both", lambda input_covariance, input_cov_eigs: input_covariance.sum() - input_cov_eigs[1]
    )
    model = made(Twice)
    run = watch(model, probes={"layer": [trace, first, both]})
    train(model, sgd(model), batch, STEPS)
    for step, given in enumerate(model.seen):
        wanted = np.cov(np.concatenate(given), rowvar=False)
        eigenvalues = np.linalg.eigvalsh(wanted)[::-1]
        assert float(run.series("layer", "test_trace")[step]) == pytest.approx(wanted.trace(), 1e-6)
        assert float(run.series("layer", "test_first")[step]) == pytest.approx(eigenvalues[0], 1e-6)
        assert float(run.series("layer", "test_both")[step]) == pytest.approx(
            wanted.sum() - eigenvalues[1], 1e-5
        )


COMBINED: dict[str, Callable[[Any], Any]] = {
    "mean": lambda calls: calls.mean(0),
    "sum": lambda calls: calls.sum(0),
    "max": lambda calls: calls.max(0),
    "min": lambda calls: calls.min(0),
    "last": lambda calls: calls[-1],
    "rss": lambda calls: np.sqrt((calls**2).sum(0)),
}


@pytest.mark.parametrize("combine", COMBINED)
def test_the_tensors_of_several_calls_become_one(combine: Any, watch: Watch) -> None:
    nbp.reduction(name="own_totals", combine=combine)(lambda tensor: tensor.sum(0))
    vector = named("vector", lambda input_own_totals: input_own_totals, axis=nbp.PER_CHANNEL)
    model = made(Twice)
    run = watch(model, probes={"layer": [vector]})
    train(model, sgd(model), batch, STEPS)
    wanted = [COMBINED[combine](np.array([one.sum(0) for one in given])) for given in model.seen]
    np.testing.assert_allclose(run.series("layer", "test_vector").values, wanted, rtol=1e-5)


@dataclass(frozen=True)
class Range:
    """A state of its own kind, which nobody can change."""

    low: Tensor
    high: Tensor

    def merge(self, other: Range) -> Range:
        return Range(torch.minimum(self.low, other.low), torch.maximum(self.high, other.high))


def test_an_object_with_merge_pools_in_its_own_way(watch: Watch) -> None:
    nbp.reduction(name="own_range")(lambda tensor: Range(tensor.min(), tensor.max()))
    nbp.reduction(name="own_width")(lambda own_range: own_range.high - own_range.low)
    width = named("width", lambda input_own_width: input_own_width)
    model = made(Twice)
    run = watch(model, probes={"layer": [width]})
    train(model, sgd(model), batch, STEPS)
    wanted = [np.ptp(np.concatenate(given)) for given in model.seen]
    np.testing.assert_allclose(run.series("layer", "test_width").values, wanted, rtol=1e-6)


def test_calls_evaluations_windows_and_every_parameter_have_it(watch: Watch) -> None:
    nbp.reduction(name="own_peak")(lambda tensor: tensor.abs().max())
    nbp.reduction(name="own_double")(lambda own_peak: 2 * own_peak)

    @nbp.window_quantity(name="test_highest")
    class Highest:
        def reset(self) -> None:
            self.value = 0.0

        def update(self, input_own_double: Tensor) -> None:
            self.value = max(self.value, float(input_own_double))

        def compute(self) -> float:
            return self.value

    peak = named("peak", lambda input_own_double: input_own_double)
    deep = named("deep", lambda each_weight_own_double: sum(map(float, each_weight_own_double)))
    model = made(Twice)
    run = watch(model, probes={"layer": [["test_highest", "every(2)"]], "": [deep]})
    run.attach("layer", peak, per_call=True)
    run.attach("layer", peak, phase="eval")
    optimizer = sgd(model, lr=0.0)
    train(model, optimizer, batch, STEPS)
    with torch.no_grad():
        model.eval()(batch(9))
    run.controls.settle()
    peaks = np.array([[2 * np.abs(one).max() for one in given] for given in model.seen])
    for call in (0, 1):
        found = run.series(f"layer[{call}]", "test_peak").values
        np.testing.assert_allclose(found, peaks[:3, call], rtol=1e-6)
    assert float(run.series("layer", "eval_test_peak")[-1]) == pytest.approx(peaks[3].mean(), 1e-6)
    assert float(run.series("layer", "test_highest")[1]) == pytest.approx(
        peaks[1:3].mean(1).max(), 1e-6
    )
    weight, bias = (float(one.detach().abs().max()) for one in model.layer.parameters())
    assert run.series("", "test_deep").values == pytest.approx([weight + bias] * 3, 1e-6)


def raising(tensor: Tensor) -> Tensor:
    raise ValueError("boom")


def text(tensor: Tensor) -> str:
    return "no tensor"


def complex_one(tensor: Tensor) -> Tensor:
    return torch.zeros(2, dtype=torch.complex64)


def writing(tensor: Tensor) -> Tensor:
    return tensor.zero_()


HOSTILE: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "raises": (raising, "QuantityError: reduction own_bad of (5, 8): ValueError: boom"),
    "returns text": (text, "QuantityError: reduction own_bad returned str 'no tensor'; a real"),
    "returns complex": (complex_one, "a real tensor or a number is expected"),
    "writes in place": (writing, "InterferenceError: reduction own_bad changed a tensor in place"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_goes_wrong_in_it_is_told_of_who_asked_and_training_goes_on(
    case: str, watch: Watch
) -> None:
    function, said = HOSTILE[case]
    nbp.reduction(name="own_bad")(function)
    bad = [
        named("one", lambda output_own_bad: output_own_bad.max()),
        named("other", lambda output_own_bad: output_own_bad.min()),
    ]
    model, twin = made(mlp), made(mlp)
    run = watch(model, probes={"0": [*bad, "output_norm"]})
    train(model, sgd(model), batch, range(4))
    train(twin, sgd(twin), batch, range(4))
    assert equal(model, twin)
    run.controls.settle()
    for probe in run.probes()[:2]:
        assert said in probe.error
        assert probe.disabled
    assert len(run.series("0", "output_norm")) == 4


def test_an_error_of_what_is_worked_out_is_told_of_all_who_asked(watch: Watch) -> None:
    nbp.reduction(name="own_worked")(lambda cov_eigs: cov_eigs.reshape(7, 7))
    one, other = (named(name, lambda input_own_worked: input_own_worked[0, 0]) for name in "ab")
    model = made(mlp)
    run = watch(model, probes={"0": [one, other, "input_norm"]})
    train(model, sgd(model), batch, range(4))
    run.controls.settle()
    for probe in run.probes()[:2]:
        assert "reduction own_worked of (4,): RuntimeError: shape '[7, 7]'" in probe.error
        assert (probe.n_errors, probe.disabled) == (3, True)
    assert len(run.series("0", "input_norm")) == 4


def test_results_of_different_shapes_are_a_gap_that_is_explained(watch: Watch) -> None:
    nbp.reduction(name="own_rows")(lambda tensor: tensor.sum(1))

    class Uneven(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x).sum() + self.layer(x[:2]).sum()

    model = made(Uneven)
    run = watch(model, probes={"layer": [named("rows", lambda output_own_rows: 0.0)]})
    train(model, sgd(model), batch, STEPS)
    run.controls.settle()
    (probe,) = run.probes()
    assert "results of shapes (5,) and (2,) in one step cannot be pooled" in probe.note
    assert probe.n_errors == 0


def test_what_one_quantity_writes_into_its_result_no_other_sees(watch: Watch) -> None:
    greedy = named("greedy", lambda input_cov_eigs: float(input_cov_eigs.zero_().sum()))
    honest = named("honest", lambda input_cov_eigs: input_cov_eigs[0])
    model = made(mlp)
    run = watch(model, probes={"0": [greedy, honest, "input_cov_max_eig"]})
    train(model, sgd(model), batch, STEPS)
    assert (run.series("0", "test_greedy").values == 0).all()
    np.testing.assert_allclose(
        run.series("0", "test_honest").values,
        run.series("0", "input_cov_max_eig").values,
        rtol=1e-6,
    )


def _on(folder: Path, place: str) -> dict[str, Any]:
    """Three steps on the host or the device, with reductions of one's own."""
    never_by_itself()
    nbp.reduction(name="own_columns")(lambda tensor: tensor.sum(0))
    nbp.reduction(name="own_range")(lambda tensor: Range(tensor.min(), tensor.max()))
    nbp.reduction(name="own_peak")(lambda tensor: tensor.max())
    probes = [
        named("columns", lambda output_own_columns: output_own_columns.abs().max()),
        named("range", lambda output_own_range: output_own_range.high),
        named("top", lambda output_own_peak: output_own_peak),
        named("trace", lambda output_covariance: output_covariance.trace()),
    ]
    built = made(mlp)
    model = moved(built) if place == "device" else built
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, store=folder / f"{place}.zarr", probes={"0": probes}) as run:
        waits.clear()
        for step in STEPS:
            given = batch(step)
            optimizer.zero_grad()
            loss_on(model(on_device(given) if place == "device" else given)).backward()
            optimizer.step()
        waited = [*waits]
    found = {probe.name: run.series("0", probe.name).values for probe in probes}
    return {"waits": waited, "errors": [one.error for one in run.status().errors], **found}


@pytest.mark.slow
def test_on_an_accelerator_no_step_waits_and_the_values_are_equal(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    host, device = (accelerator.run(_on, tmp_path, place) for place in ("host", "device"))
    assert host.pop("errors") == device.pop("errors") == []
    assert device.pop("waits") == []
    host.pop("waits")
    assert {len(values) for values in host.values()} == {len(STEPS)}
    for name, values in host.items():
        np.testing.assert_allclose(device[name], values, rtol=1e-5, err_msg=name)
