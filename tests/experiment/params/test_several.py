"""Lists of dicts: a model for each."""

from typing import Any

import pytest

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.several import read_all

GIVEN: dict[str, Any] = {
    "save_params": {"exp_id": "one"},
    "model_params": {"func": dict},
    "train_params": {"data_params": {"func": list, "batch_size": 8}},
}


def given(**other: Any) -> dict[str, Any]:
    return {**GIVEN, **other}


def test_one_dict_of_each_is_one_model() -> None:
    (only,) = read_all(**GIVEN)
    assert (only.prefix, only.save.exp_id, only.load) == ("model_0", "one", None)
    assert (only.loss.is_averaged, only.optimizer.optimizer, only.validation) == (True, None, {})


def test_a_list_is_for_each_model_and_a_list_of_one_for_all() -> None:
    models = [{"func": dict, "width": 1}, {"func": dict, "width": 2, "prefix": "wide"}]
    first, second = read_all(**given(model_params=models, loss_params=[{"pred_targets": "y"}]))
    assert [one.prefix for one in (first, second)] == ["model_0", "wide"]
    assert [one.model.rest["width"] for one in (first, second)] == [1, 2]
    assert [one.loss.pred_targets for one in (first, second)] == [("y",), ("y",)]


def test_models_that_would_be_saved_in_one_place_get_one_each() -> None:
    shared = read_all(**given(model_params=[{"func": dict}, {"func": dict, "prefix": "b"}]))
    assert [one.save.exp_id for one in shared] == ["one_model_0", "one_b"]
    own = read_all(
        **given(
            model_params=[{"func": dict}, {"func": dict}],
            save_params=[{"exp_id": "one"}, {"exp_id": "two"}],
        )
    )
    assert [one.save.exp_id for one in own] == ["one", "two"]


@pytest.mark.parametrize("lengths", [(2, 3), (1, 0)])
def test_lists_have_one_length(lengths: tuple[int, int]) -> None:
    n_models, n_losses = lengths
    with pytest.raises(ParamError, match="lists of different lengths"):
        read_all(**given(model_params=[{"func": dict}] * n_models, loss_params=[{}] * n_losses))


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(ParamError, match=r"\['a'\] more than once"):
        read_all(**given(model_params=[{"func": dict, "prefix": "a"}] * 2))


def test_models_share_one_iterator_of_minibatches() -> None:
    def trains(**data: Any) -> list[dict[str, Any]]:
        other = {"func": list, "batch_size": 8, **data.pop("data", {})}
        return [
            {"data_params": {"func": list, "batch_size": 8}, "minibatch_size": 4},
            {"data_params": other, "minibatch_size": 4, **data},
        ]

    models = [{"func": dict}] * 2
    both = read_all(**given(model_params=models, train_params=trains(data={"batch_size": 16})))
    assert [one.train.num_minibatches for one in both] == [2, 4]
    for other in (
        trains(minibatch_size=8),
        trains(data={"func": tuple}),
        trains(data={"noise": 1}),
    ):
        with pytest.raises(ParamError, match="share one iterator of data"):
            read_all(**given(model_params=models, train_params=other))
