"""Dicts at the door: every key and default, wrong names and values, old names."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.errors import ParamError, UnknownNameError
from notebook_probe.experiment.params.base import Given, read
from notebook_probe.experiment.params.sections import (
    LearningRateParams,
    LoadParams,
    LossParams,
    ModelParams,
    OptimizerParams,
    SaveParams,
    TrainParams,
    ValidationParams,
    read_validations,
)

FREQUENCIES = [
    "save_metrics_freq",
    "save_valid_freq",
    "save_filters_freq",
    "cache_filters_freq",
    "save_intermediate_freq",
]
DATA = {"func": list, "batch_size": 12}


def test_what_is_left_out_of_save_params_is_as_documented() -> None:
    read_ = read(SaveParams, {"exp_id": "one"}, "save_params")
    assert [getattr(read_, name) for name in FREQUENCIES] == [5, 3000, 30000, 3000, None]
    assert (read_.cache_max_num, read_.do_save, read_.save_initial_filters) == (6, True, True)
    assert (read_.host, read_.port, read_.dbname, read_.collname) == (None, None, None, None)
    assert (read_.save_to_gfs, read_.cache_dir) == ((), None)


def test_every_key_of_save_params_is_taken() -> None:
    given = {
        "host": "localhost",
        "port": 27017,
        "dbname": "lab",
        "collname": "digits",
        "exp_id": "one",
        "save_metrics_freq": 1,
        "save_valid_freq": 2,
        "save_filters_freq": 3,
        "cache_filters_freq": 4,
        "cache_max_num": 5,
        "do_save": False,
        "cache_dir": "there",
        "save_initial_filters": False,
        "save_to_gfs": ["logits"],
        "save_intermediate_freq": 6,
    }
    read_ = read(SaveParams, given, "save_params")
    assert read_.shown() == {**given, "save_to_gfs": ("logits",), "cache_dir": Path("there")}


@pytest.mark.parametrize("name", FREQUENCIES)
@pytest.mark.parametrize("value", [0, -1, True, False, 2.0, "5", [5]])
def test_a_frequency_is_a_whole_number_from_one_or_never(name: str, value: object) -> None:
    with pytest.raises(ParamError, match=rf"^save_params\['{name}'\]="):
        read(SaveParams, {"exp_id": "one", name: value}, "save_params")
    for allowed in (1, None, np.int64(7)):
        assert getattr(read(SaveParams, {"exp_id": "one", name: allowed}, ""), name) == allowed


def test_an_unknown_key_is_refused_with_the_names_that_are_near() -> None:
    with pytest.raises(UnknownNameError, match=r"^save_params: no key 'save_filter_freq'; close: "):
        read(SaveParams, {"exp_id": "one", "save_filter_freq": 3}, "save_params")
    with pytest.raises(UnknownNameError, match=r"train_params: no key 'num_step'.*'num_steps'"):
        read(TrainParams, {"data_params": DATA, "num_step": 3}, "train_params")


def test_a_wrong_value_can_be_caught_as_a_value_error_and_as_a_type_error() -> None:
    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match=r"save_params\['do_save'\]=1: should be a valid boolean"):
            read(SaveParams, {"exp_id": "one", "do_save": 1}, "save_params")


def test_every_experiment_has_an_id() -> None:
    with pytest.raises(ParamError, match=r"^save_params: 'exp_id' is missing"):
        read(SaveParams, {"do_save": False}, "save_params")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../up", "a\\b", "c:", " a", "\0"])
def test_a_name_cannot_leave_its_folder(name: str) -> None:
    for key in ("host", "dbname", "collname", "exp_id"):
        with pytest.raises(ParamError, match="names a folder"):
            read(SaveParams, {"exp_id": "one", key: name}, "save_params")


def test_every_key_of_load_params_is_taken() -> None:
    pattern = re.compile("conv")
    given = {
        "host": "h",
        "port": 1,
        "dbname": "d",
        "collname": "c",
        "exp_id": "e",
        "do_restore": False,
        "query": {"step": {"$lt": 5}},
        "from_ckpt": Path("a.pt"),
        "to_restore": pattern,
        "load_param_dict": {"a": "b"},
        "strict": False,
        "restore_global_step": False,
        "fall_back": False,
    }
    assert read(LoadParams, given, "load_params").shown() == {**given, "from_ckpt": "a.pt"}
    plain = read(LoadParams, {}, "load_params")
    assert (plain.do_restore, plain.strict, plain.restore_global_step) == (True, True, True)
    assert (plain.query, plain.from_ckpt, plain.to_restore) == (None, None, None)
    assert read(LoadParams, {"to_restore": ["a"]}, "").to_restore == ("a",)
    assert read(LoadParams, {"to_restore": min}, "").to_restore is min
    with pytest.raises(ParamError, match="to_restore"):
        read(LoadParams, {"to_restore": 3}, "load_params")


def test_what_has_no_meaning_of_its_own_is_for_the_function() -> None:
    given = {"func": dict, "seed": 3, "prefix": "net", "depth": 4, "devices": ["cpu"], "rest": 1}
    model = read(ModelParams, given, "model_params")
    assert model.rest == {"depth": 4, "rest": 1}
    assert (model.seed, model.prefix, model.devices) == (3, "net", torch.device("cpu"))
    assert model.trainable_scopes is None
    rate = read(LearningRateParams, {"decay_steps": 3}, "learning_rate_params")
    assert (rate.func, rate.rest) == (None, {"decay_steps": 3})
    optimizer = read(OptimizerParams, {"momentum": 0.9}, "optimizer_params")
    assert (optimizer.optimizer, optimizer.rest) == (None, {"momentum": 0.9})


def test_a_model_needs_its_function_and_one_device() -> None:
    with pytest.raises(ParamError, match=r"^model_params: 'func' is missing"):
        read(ModelParams, {"depth": 4}, "model_params")
    for devices in (["cpu", "cpu"], "gpus"):
        with pytest.raises(ParamError, match=r"^model_params\['devices'\]="):
            read(ModelParams, {"func": dict, "devices": devices}, "model_params")


def test_what_is_left_out_of_train_params_is_as_documented() -> None:
    train = read(TrainParams, {"data_params": DATA}, "train_params")
    assert (train.num_steps, train.validate_first, train.thres_loss) == (None, True, 100.0)
    assert (train.targets, train.train_loop, train.num_minibatches) == (None, None, 1)


def test_a_minibatch_size_divides_the_batch() -> None:
    train = read(TrainParams, {"data_params": DATA, "minibatch_size": 4}, "train_params")
    assert train.num_minibatches == 3
    with pytest.raises(ParamError, match=r"\['minibatch_size'\]=5: does not divide batch_size=12"):
        read(TrainParams, {"data_params": DATA, "minibatch_size": 5}, "train_params")
    with pytest.raises(ParamError, match="of which batch_size"):
        read(TrainParams, {"data_params": {"func": list}, "minibatch_size": 5}, "train_params")


@pytest.mark.parametrize("threshold", [float("nan"), True, "100", None])
def test_a_threshold_of_the_loss_is_a_number(threshold: object) -> None:
    with pytest.raises(ParamError, match="thres_loss"):
        read(TrainParams, {"data_params": DATA, "thres_loss": threshold}, "train_params")


def test_no_aggregation_and_nothing_said_of_it_are_different() -> None:
    assert read(LossParams, {}, "loss_params").is_averaged
    assert not read(LossParams, {"agg_func": None}, "loss_params").is_averaged
    assert read(LossParams, {}, "loss_params").pred_targets == ("labels",)
    assert read(LossParams, {"pred_targets": "y"}, "loss_params").pred_targets == ("y",)


def test_old_names_are_accepted_with_a_warning_and_win() -> None:
    old_and_new = {"loss_per_case_func": min, "loss_func": max, "targets": ["a"]}
    with pytest.warns(DeprecationWarning, match=r"loss_params: '\w+' is deprecated"):
        loss = read(LossParams, old_and_new, "loss_params")
    assert (loss.loss_func, loss.pred_targets) == (min, ("a",))
    with pytest.warns(DeprecationWarning, match="'func' is deprecated; it is 'optimizer' now"):
        old = read(OptimizerParams, {"func": dict, "optimizer": list}, "optimizer_params")
    assert old.optimizer is dict


def test_the_data_of_a_validation_has_two_names() -> None:
    valid = read_validations({"test": {"data": DATA, "num_steps": 3}}, "validation_params")
    assert (valid["test"].data_params.batch_size, valid["test"].num_steps) == (12, 3)
    assert read_validations(None, "validation_params") == {}
    with pytest.raises(ParamError, match="'data' and 'data_params' are the same"):
        read(ValidationParams, {"data": DATA, "data_params": DATA}, "validation_params['test']")
    with pytest.raises(UnknownNameError, match=r"validation_params\['test'\]: no key 'agg_fnc'"):
        read_validations({"test": {"data": DATA, "agg_fnc": min}}, "validation_params")


@pytest.mark.parametrize("given", [3, "text", [1], {"exp_id"}])
def test_what_is_no_dict_is_refused(given: object) -> None:
    with pytest.raises(ParamError, match=r"^save_params=.*a dict is expected"):
        read(SaveParams, given, "save_params")


def test_dicts_are_copied_and_never_changed() -> None:
    inner: dict[str, Any] = {"sizes": [1, 2]}
    given = {"func": dict, "options": inner}
    model = read(ModelParams, given, "model_params")
    inner["sizes"].append(3)
    assert model.rest == {"options": {"sizes": [1, 2]}}
    model.rest["options"]["sizes"].clear()
    assert given == {"func": dict, "options": {"sizes": [1, 2, 3]}}


def test_what_was_read_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        read(SaveParams, {"exp_id": "one"}, "").do_save = False


WRONG = st.one_of(st.none(), st.booleans(), st.floats(), st.text(), st.lists(st.integers()))


@pytest.mark.slow
@given(st.sampled_from([SaveParams, LoadParams, TrainParams, LossParams]), st.data())
def test_whatever_is_given_either_is_read_or_is_one_error(
    kind: type[Given], data: st.DataObject
) -> None:
    names = st.sampled_from([*kind.model_fields])
    with suppress(ParamError):
        assert isinstance(read(kind, data.draw(st.dictionaries(names, WRONG)), "some_params"), kind)
