"""A validation goes over its data and leaves everything as it was."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from notebook_probe.experiment.validation import Validation, mean_dict, reduce_mean_dict
from notebook_probe.train.generators import generator_states
from tests.experiment.optimizers.networks import same_state

Batch = dict[str, Tensor]


def data(*values: float) -> list[Batch]:
    return [{"x": torch.tensor([value])} for value in values]


def sum_of(inputs: Batch, output: Tensor) -> dict[str, Any]:
    return {"sum": output.sum()}


def call(model: nn.Module, batch: Batch) -> Tensor:
    result: Tensor = model(batch["x"])
    return result


def run(validation: Validation, model: nn.Module | None = None, **options: Any) -> dict[str, Any]:
    return validation.run(nn.Identity() if model is None else model, call=call, **options)


def test_without_aggregations_the_result_is_the_list_of_results() -> None:
    found = run(Validation("v", data(1.0, 2.0), sum_of))
    assert found == {"result": [{"sum": torch.tensor(1.0)}, {"sum": torch.tensor(2.0)}]}


def test_a_dict_is_the_result_as_it_is_and_anything_else_is_under_result() -> None:
    assert run(Validation("v", data(1.0, 3.0), sum_of, agg=mean_dict)) == {"sum": 2.0}
    assert run(Validation("v", data(1.0, 3.0), sum_of, agg=len)) == {"result": 2}


def test_an_online_aggregation_gets_none_then_what_it_gave_and_numbers_from_0() -> None:
    seen: list[Any] = []

    def keep(agg: Any, result: Mapping[str, Any], i: int) -> Any:
        seen.append((agg, float(result["sum"]), i))
        return i * 10

    found = run(
        Validation("v", data(1.0, 2.0, 3.0), sum_of, online_agg=keep, agg=lambda a: {"a": a})
    )
    assert seen == [(None, 1.0, 0), (0, 2.0, 1), (10, 3.0, 2)]
    assert found == {"a": 20}


def test_online_and_offline_means_agree() -> None:
    values = data(*torch.rand(9).tolist())
    online = run(Validation("v", values, sum_of, online_agg=reduce_mean_dict))
    offline = run(Validation("v", values, sum_of, agg=mean_dict))
    assert online == pytest.approx(offline, rel=1e-14)


def test_no_step_gives_the_aggregation_of_none() -> None:
    found = run(Validation("v", data(1.0), sum_of, num_steps=0, agg=lambda agg: {"of": agg}))
    assert found == {"of": None}
    assert run(Validation("v", [], sum_of)) == {"result": None}


class Sized(list[Batch]):
    total_batches = 2


def test_how_many_steps() -> None:
    many = data(1.0, 2.0, 3.0)
    assert Validation("v", many, sum_of).steps == 3
    assert Validation("v", Sized(many), sum_of).steps == 2
    assert Validation("v", Sized(many), sum_of, num_steps=1).steps == 1
    with pytest.raises(ValueError, match="validation 'v': how many batches"):
        Validation("v", iter(many), sum_of)
    for bad in (-1, True, 1.0):
        with pytest.raises(ValueError, match="a whole number from 0"):
            Validation("v", many, sum_of, num_steps=bad)  # type: ignore[arg-type]


def test_data_that_ends_begins_anew_and_each_run_begins_at_its_beginning() -> None:
    validation = Validation("v", data(1.0, 2.0), sum_of, num_steps=3, agg=mean_dict)
    assert run(validation) == run(validation) == {"sum": pytest.approx(4 / 3)}


def test_data_that_has_no_batch_left_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no batch, or can be gone through once"):
        run(Validation("v", iter(data(1.0)), sum_of, num_steps=2))


def test_a_result_that_is_no_dict_is_an_error() -> None:
    validation = Validation("v", data(1.0), lambda inputs, output: output)
    with pytest.raises(ValueError, match="'v', batch 0: Tensor; a dict is expected"):
        run(validation)


def test_targets_by_default_are_those_of_the_run() -> None:
    validation = Validation("v", data(1.0), agg=mean_dict)
    assert run(validation, default_targets=sum_of) == {"sum": 1.0}
    with pytest.raises(ValueError, match="has no targets"):
        run(validation)


def test_a_loop_of_the_users_is_called_for_every_step() -> None:
    def two_at_once(step: Any, batches: Iterator[Batch]) -> dict[str, Any]:
        return {"sum": step(next(batches))["sum"] + step(next(batches))["sum"]}

    validation = Validation("v", data(1.0, 2.0, 3.0, 4.0), sum_of, num_steps=2, loop=two_at_once)
    assert [float(one["sum"]) for one in run(validation)["result"]] == [3.0, 7.0]


def test_each_batch_is_told() -> None:
    told: list[Any] = []
    run(
        Validation("v", data(1.0, 2.0), sum_of), on_batch=lambda i, result: told.append((i, result))
    )
    assert told == [(0, {"sum": 1.0}), (1, {"sum": 2.0})]


def a_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 1))


def test_modes_buffers_generators_and_gradients_are_left_as_they_were() -> None:
    model = a_model()
    model[3].eval()  # a frozen part
    before = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]

    def targets(inputs: Batch, output: Tensor) -> dict[str, Any]:
        assert not torch.is_grad_enabled()
        assert not any(module.training for module in model.modules())
        model[1].running_mean.add_(1.0)  # type: ignore[operator]
        return {"drawn": torch.rand(1) + random.random() + np.random.rand()}  # noqa: NPY002

    generator = torch.Generator().manual_seed(3)
    loader: DataLoader[Any] = DataLoader(
        [{"x": torch.tensor([float(i)])} for i in range(8)],  # type: ignore[arg-type]
        batch_size=2,
        shuffle=True,
        generator=generator,
    )
    states = generator_states(), generator.get_state()
    validation = Validation("v", loader, targets)
    first = run(validation, model)
    assert same_state(generator_states(), states[0])
    assert torch.equal(generator.get_state(), states[1])
    assert same_state(dict(model.state_dict()), before)
    assert [module.training for module in model.modules()] == modes
    assert torch.is_grad_enabled()
    assert same_state(run(validation, model), first)


@pytest.mark.slow
def test_they_are_when_it_raises_too() -> None:
    model = nn.Dropout()

    def targets(inputs: Batch, output: Tensor) -> dict[str, Any]:
        torch.rand(1)
        raise KeyError("no such key")

    states = generator_states()
    with pytest.raises(KeyError):
        run(Validation("v", data(1.0, 2.0), targets), model)
    assert same_state(generator_states(), states)
    assert model.training
