"""Images and other arrays that the loop logs: as they were, at their step, wherever one reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import notebook_probe as nbp
from notebook_probe.errors import (
    ClosedRunError,
    QuantityError,
    ReplacedWarning,
    UnknownNameError,
)
from tests.models import floats, made, mlp, sgd, train
from tests.run.accelerator import Accelerator, copies, on_device, waits
from tests.run.conftest import Watch

batch = floats(5, 4)

ODD = np.array([[np.nan, np.inf], [-np.inf, -0.0]])
GIVEN: dict[str, tuple[Any, npt.NDArray[Any]]] = {
    "bytes": (torch.arange(256, dtype=torch.uint8).reshape(8, 8, 4), np.arange(256)),
    "halves": (torch.tensor([[0.5, 65504.0]], dtype=torch.float16), np.array([0.5, 65504.0])),
    "bfloat16": (
        torch.tensor([1.0078125, 2.0**127], dtype=torch.bfloat16),
        np.array([1.0078125, 2.0**127]),
    ),
    "truth": (torch.tensor([[True], [False]]), np.array([1, 0])),
    "double": (torch.tensor([1 / 3], dtype=torch.float64), np.array([1 / 3])),
    "too large": (np.array([1e300, -1e300]), np.array([np.inf, -np.inf])),
    "whole": (np.array([-(2**24), 2**24]), np.array([-(2**24), 2**24])),
    "list": ([[1, 2], [3, 4]], np.array([1, 2, 3, 4])),
    "transposed": (torch.arange(6.0).reshape(2, 3).T, np.arange(6.0).reshape(2, 3).T),
    "of a graph": (torch.ones(3, requires_grad=True) * 2, np.full(3, 2.0)),
    "not finite": (ODD, ODD),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_an_array_is_kept_as_it_was(kind: str, watch: Watch) -> None:
    given, expected = GIVEN[kind]
    model = made(mlp)
    run = watch(model, probes=None)
    run.log_array("seen", given)
    train(model, sgd(model), batch, [0])
    run.close()
    with np.errstate(over="ignore"):
        wanted = expected.astype(np.float32).reshape(1, *np.shape(given))
    for source in (run, nbp.open_run(run.location)):
        np.testing.assert_array_equal(source.series("", "seen"), wanted)


def test_arrays_lie_at_their_steps_and_modules_live_and_stored(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer, weights = sgd(model), []
    for step in range(6):
        train(model, optimizer, batch, [step])
        if step % 2:
            parameters = dict(model.named_parameters())
            weights.append(parameters["0.weight"].detach().clone().numpy())
            run.log_array("filters", parameters["0.weight"], module="0")
            run.log_array("bias", parameters["2.bias"], module="2.bias")
    live = run.series("0", "filters")
    assert live.step.values.tolist() == [1, 3, 5], "that of the open step, too"
    np.testing.assert_array_equal(live, weights)
    run.close()
    opened = nbp.open_run(run.location)
    assert opened.series("0", "filters").dims == ("step", "dim_0", "dim_1")
    np.testing.assert_array_equal(opened.blobs["filters"]["0"], weights)
    np.testing.assert_array_equal(run.series("0", "filters"), weights)
    assert opened.series("2.bias", "bias").shape == (3, 2)


def test_an_array_is_copied_when_it_is_given(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    tensor, array = torch.zeros(2, 2), np.zeros(3, np.float32)
    run.log_array("tensor", tensor)
    run.log_array("array", array)
    tensor.fill_(7)
    array.fill(7)
    run.close()
    assert float(run.series("", "tensor").max()) == float(run.series("", "array").max()) == 0


def test_the_same_name_again_in_one_step_replaces_it_and_warns_once(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.log_array("seen", [1.0, 1.0])
    with pytest.warns(ReplacedWarning, match=r"log_array\('seen'\): step 0 has an array"):
        run.log_array("seen", [2.0, 2.0], module="(root)")
    train(model, sgd(model), batch, [0])
    run.log_array("seen", [3.0, 3.0])
    run.log_array("seen", [4.0, 4.0], module="0")
    run.close()
    np.testing.assert_array_equal(run.series("", "seen"), [[2.0, 2.0], [3.0, 3.0]])
    np.testing.assert_array_equal(run.series("0", "seen"), [[4.0, 4.0]])


def log_on_device(folder: Path) -> tuple[npt.NDArray[Any], int, list[str]]:
    """The series of an array that was changed after it was logged, and who waited for it."""
    model = made(mlp)
    run = nbp.watch(model, store=folder, probes=None, budget=None)
    inner = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    run.log_array("seen", on_device(inner))
    inner.fill_(9)
    train(model, sgd(model), batch, [0])
    n_copies, waited = len(copies), [*waits]
    run.close()
    return run.series("", "seen").values, n_copies, waited


def test_nobody_waits_for_an_array_of_a_device(tmp_path: Path, accelerator: Accelerator) -> None:
    series, n_copies, waited = accelerator.run(log_on_device, tmp_path / "r.zarr")
    np.testing.assert_array_equal(series, np.arange(6).reshape(1, 2, 3))
    assert (n_copies, waited) == (0, [])


def test_several_of_the_largest_arrays_in_one_step_are_all_kept(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    for place in range(4):
        run.log_array(f"image{place}", np.full((1024, 1024), place, np.uint8))
    train(model, sgd(model), batch, [0])
    run.close()
    assert run.status().dropped_rows == 0
    for place in range(4):
        assert float(run.series("", f"image{place}").isel(step=0).max()) == place


def test_arrays_count_in_max_bytes(watch: Watch) -> None:
    model, optimizer = (model := made(mlp)), sgd(model)
    run = watch(model, probes=None, max_bytes=300_000)
    noise = np.random.default_rng(0).normal(size=(100, 100))
    for step in range(20):
        train(model, optimizer, batch, [step])
        run.log_array("noise", noise + step)
        run.flush()
    assert "the record has its max_bytes=300000" in run.status().problem
    kept = run.series("", "noise").sizes["step"]
    assert 0 < kept < 20
    run.close()
    assert nbp.open_run(run.location).series("", "noise").sizes["step"] <= kept


def test_a_run_that_goes_on_keeps_the_arrays_of_before(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(4):
        train(model, optimizer, batch, [step])
        run.log_array("seen", [step, step])
    run.close()
    again = watch(model, probes=None, store=run.location, step=2, branch=True)
    again.log_array("seen", [9, 9])
    train(model, optimizer, batch, [0])
    again.close()
    np.testing.assert_array_equal(again.series("", "seen")[:, 0], [0, 1, 9])


REFUSED: dict[str, tuple[Any, str]] = {
    "text": ("abc", "an array of real numbers is expected"),
    "nothing": (None, "an array of real numbers is expected"),
    "complex": (torch.zeros(2, dtype=torch.complex64), "an array of real numbers is expected"),
    "a number": (1.0, r"shape \(\), 1 elements"),
    "empty": (np.zeros((0, 3)), r"shape \(0, 3\), 0 elements; 1 to 1048576 of them"),
    "large": (np.zeros((1025, 1024), bool), r"1049600 elements; 1 to 1048576 of them .* 4 MB"),
    "ragged": ([[1, 2], [3]], r"log_array\('seen'\): list; "),
    "meta": (torch.zeros(2, device="meta"), "an array of real numbers is expected"),
    "sparse": (torch.eye(2).to_sparse(), "an array of real numbers is expected"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_small_array_of_numbers_is_refused_at_the_door(kind: str, watch: Watch) -> None:
    given, why = REFUSED[kind]
    run = watch(made(mlp), probes=None)
    with pytest.raises(QuantityError, match=why):
        run.log_array("seen", given)
    assert not run.blobs


def test_names_that_stand_for_something_else_are_refused(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.log(loss=1.0)
    run.log_array("seen", [1.0, 2.0])
    for name, why in {
        "weight_norm": "a quantity has this name",
        "loss": "'loss' is a number in this record",
        "train/image": "letters, digits and _ only",
        "step": "a coordinate's name",
    }.items():
        with pytest.raises(QuantityError, match=why):
            run.log_array(name, [1.0])
    with pytest.raises(QuantityError, match="'seen' is an array"):
        run.log(seen=1.0)
    with pytest.raises(QuantityError, match=r"has shape \(2,\) in this record, not \(3,\)"):
        run.log_array("seen", [1.0, 2.0, 3.0])
    with pytest.raises(UnknownNameError, match="no module 'convl' in the model"):
        run.log_array("other", [1.0], module="convl")
    with pytest.raises(TypeError, match="its path as text"):
        run.log_array("other", [1.0], module=0)  # type: ignore[arg-type]
    train(model, sgd(model), batch, [0])
    with run.at_step(0), pytest.raises(RuntimeError, match="inside at_step"):
        run.log_array("other", [1.0])
    run.close()
    assert [*nbp.open_run(run.location).blobs] == ["seen"]
    with pytest.raises(ClosedRunError):
        run.log_array("seen", [1.0, 2.0])
