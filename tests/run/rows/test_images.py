"""A quantity whose value is an image: recorded as it was returned, and shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import QuantityError, RecordWarning
from notebook_probe.quantities.define.decorator import define
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

batch = floats(5, 4)


def picture(function: Callable[..., Any], combine: Any = "mean") -> Any:
    return define(function, function, name=function.__name__, axis=nbp.IMAGE, combine=combine)


def gram(output: Tensor) -> Tensor:
    """Inner products of the samples' outputs."""
    return output @ output.T


def bytes_seen(weight: Tensor) -> Any:
    """In colour, as bytes."""
    scaled = (weight.abs() / weight.abs().max() * 255).to(torch.uint8)
    return scaled[..., None].expand(*scaled.shape, 3)


def test_an_image_is_what_the_quantity_returned(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    seen: dict[int, Any] = {}
    model[2].register_forward_hook(lambda *given: seen.update({len(seen): given[2].detach()}))
    run.attach(["0", "2"], picture(gram), "every(2)")
    run.attach("0", picture(bytes_seen), "every(2)")
    train(model, sgd(model), batch, range(5))
    wanted = np.array([(seen[step] @ seen[step].T).numpy() for step in (0, 2, 4)])
    run.close()
    for source in (run, nbp.open_run(run.location)):
        series = source.series("2", "gram")
        assert series.step.values.tolist() == [0, 2, 4]
        np.testing.assert_allclose(series, wanted, rtol=1e-5)
        coloured = source.series("0", "bytes_seen")
        assert coloured.shape == (3, 8, 4, 3)
        assert float(coloured.max()) == 255
        assert source.blobs["gram"].keys() == {"0", "2"}
    assert run.status().dropped_rows == 0


def test_an_image_of_the_open_step_is_seen(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", picture(gram))
    train(model, sgd(model), batch, range(2))
    assert run.series("0", "gram").step.values.tolist() == [0, 1]


def test_two_schedules_give_each_step_one_image(watch: Watch) -> None:
    model, quantity = made(mlp), picture(gram)
    run = watch(model, probes=None)
    run.attach("0", quantity, "every(2)")
    run.attach("0", quantity, "every(3)")
    train(model, sgd(model), batch, range(7))
    run.close()
    assert run.series("0", "gram").step.values.tolist() == [0, 2, 3, 4, 6]
    assert run.status().dropped_rows == 0


def test_of_several_calls_the_last_image_is_kept_and_each_where_they_are_apart(
    watch: Watch,
) -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(self.fc(x))

    model, seen = Twice(), []
    run = watch(model, probes=None)
    model.fc.register_forward_hook(lambda *given: seen.append(gram(given[2].detach()).numpy()))
    run.attach("fc", picture(gram), "every(2)")
    run.attach("fc", picture(gram), "every(1)", per_call=True)
    train(model, sgd(model), batch, [0])
    run.close()
    np.testing.assert_allclose(run.series("fc", "gram")[0], seen[1], rtol=1e-5)
    np.testing.assert_allclose(run.series("fc[0]", "gram")[0], seen[0], rtol=1e-5)


def test_an_image_of_another_size_is_lost_and_said_and_nothing_else_is(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["output_norm"]})
    run.attach("0", picture(gram))
    optimizer = sgd(model)
    for step, size in enumerate((5, 5, 3)):
        train(model, optimizer, floats(size, 4), [step])
    assert run.series("0", "gram").sizes["step"] == 3, "that of the open step is a gap"
    with pytest.warns(RecordWarning, match="1 row was lost: step 2: ValueError"):
        run.close()
    assert "an array of shape (3, 3)" in run.status().problem
    assert run.series("0", "output_norm").sizes["step"] == 3
    assert run.series("0", "gram").step.values.tolist() == [0, 1]


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2), (1, 2, 3, 3), (0, 3)])
def test_what_is_no_image_is_the_quantitys_error(shape: tuple[int, ...], watch: Watch) -> None:
    def odd(output: Tensor) -> Tensor:
        """No image."""
        return torch.zeros(shape)

    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", picture(odd))
    train(model, sgd(model), batch, range(2))
    [failed] = run.status().errors
    assert "QuantityError" in failed.error
    run.close()


def test_an_axis_that_is_none_is_refused() -> None:
    with pytest.raises(QuantityError, match="allowed: an Axis, PER_CHANNEL, IMAGE, None"):
        nbp.quantity(axis="image")(gram)  # type: ignore[call-overload]
