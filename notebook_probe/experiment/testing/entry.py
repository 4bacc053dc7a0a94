"""A test from dicts of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from notebook_probe.experiment.building.calling import call_model
from notebook_probe.experiment.building.loss import ExperimentLoss
from notebook_probe.experiment.building.model import log_devices
from notebook_probe.experiment.params.base import check_flags
from notebook_probe.experiment.params.plain import Origins, plain
from notebook_probe.experiment.params.sections import LossParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.results import ExperimentResults
from notebook_probe.experiment.testing.loaded import Loaded, load
from notebook_probe.experiment.testing.params import TestParams, read_tests
from notebook_probe.experiment.testing.writing import TestRecord
from notebook_probe.experiment.validation import Validation

__all__ = ["test", "test_from_params"]


def test_from_params(
    load_params: Any,
    model_params: Any,
    validation_params: Any,
    log_device_placement: bool = False,
    save_params: Any = None,
    dont_run: bool = False,
    skip_check: bool = False,
) -> Any:
    """Load a saved state of an experiment, and run every validation on it once.

    If ``load_params`` matches several units, the one that was saved last is loaded. The model is
    made with the seed of its training, and with its ``cfg`` if the function takes one. Any of the
    dicts may be a list, for several models. No dict is changed.

    Parameters
    ----------
    load_params : dict
        ``dbname``, ``collname``, ``exp_id``; ``query``, ``from_ckpt``, ``to_restore``,
        ``load_param_dict``, ``strict``.
    model_params : dict
        ``func``, which makes the model from the other entries; it gets ``train=False``.
    validation_params : dict of dict
        Validations by name: ``data_params``, ``targets``, ``num_steps``,
        ``online_agg_func``, ``agg_func``, ``valid_loop``.
    log_device_placement : bool
        Log the device of each parameter.
    save_params : dict, optional
        Location of the results, by default none: one record, whose config says in ``validates``
        what was tested. With ``save_intermediate_freq``, the results of batch 0 and of every batch
        at this interval are stored in a separate record, and their ids are in the result under
        ``"intermediate_steps"``.
    dont_run : bool
        Only load, and return the arguments of `notebook_probe.experiment.test`.
    skip_check : bool
        Skip the versions of packages and the git states of the functions.

    Returns
    -------
    results : dict
        Results by ``prefix`` of the model, then by name of the validation.
    ids : dict
        Ids of the records that were written, by ``prefix`` of the model.

    Raises
    ------
    UnknownNameError, ParamError
        The dicts have an invalid entry; nothing was loaded.
    FileNotFoundError
        No saved state matches.
    CheckpointError
        The checkpoint does not fit the model.

    Examples
    --------
    >>> results, ids = test_from_params(  # doctest: +SKIP
    ...     load_params={"exp_id": "first", "query": {"step": {"$lte": 3000}}},
    ...     model_params={"func": Net, "depth": 3},
    ...     validation_params={"held_out": {"data_params": {"func": held_out, "batch_size": 64}}},
    ... )
    >>> results["model_0"]["held_out"]  # doctest: +SKIP
    {'accuracy': 0.91}
    """
    check_flags(log_device_placement=log_device_placement, dont_run=dont_run, skip_check=skip_check)
    several = read_tests(
        load_params=load_params,
        model_params=model_params,
        validation_params=validation_params,
        save_params=save_params,
    )
    origins = Origins(skip_check)
    configs = [_config(one, origins) for one in several]  # before anything is loaded
    loaded = tuple(map(load, several, configs))
    if log_device_placement:
        for one in loaded:
            log_devices(one.prefix, one.model)
    return {"loaded": loaded} if dont_run else test(loaded)


def test(loaded: Sequence[Loaded]) -> ExperimentResults:
    """Run the tests that ``test_from_params(..., dont_run=True)`` loaded: ``test(**built)``.

    Parameters
    ----------
    loaded : sequence of Loaded

    Returns
    -------
    results, ids : dict
        Same as from `test_from_params`.
    """
    results: dict[str, dict[str, dict[str, Any]]] = {}
    ids: dict[str, list[str]] = {}
    for one in loaded:
        record = _record(one)
        results[one.prefix] = {
            validation.name: _result(one, validation, record) for validation in one.validations
        }
        ids[one.prefix] = [] if record is None else [record.write(results[one.prefix])]
    return ExperimentResults(results, ids)


vars(test_from_params)["__test__"] = vars(test)["__test__"] = False  # pytest would collect them


def _result(one: Loaded, validation: Validation, record: TestRecord | None) -> dict[str, Any]:
    save = one.params.save
    every = None if save is None else save.save_intermediate_freq
    default = ExperimentLoss(LossParams()).as_target
    if record is None or every is None:
        return validation.run(one.model, default, call_model)
    with record.batches(validation.name, every) as batches:
        result = validation.run(one.model, default, call_model, batches.keep)
    return {**result, "intermediate_steps": batches.ids}


def _record(one: Loaded) -> TestRecord | None:
    save = one.params.save
    if save is None or not save.do_save:
        return None
    return TestRecord(ExperimentFolder.of(save), one.model, one.config, one.step, save.save_to_gfs)


def _config(params: TestParams, origins: Origins) -> dict[str, Any]:
    given = {"load": params.load, "model": params.model, "validation": params.validation}
    return {name: plain(one, f"{name}_params", origins) for name, one in given.items()}
