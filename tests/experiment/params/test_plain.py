"""Parameters as a record holds them."""

import json
import re
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.plain import Origins, plain
from notebook_probe.experiment.params.sections import ModelParams
from notebook_probe.record.format.notes import written_notes

ONLY_NAMES = Origins(skip_check=True)


class Colour(Enum):
    RED = "red"


class Length(int):
    pass


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (True, True),
        (np.True_, True),
        (np.float32(0.5), 0.5),
        (np.array(3), 3),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (torch.tensor(2.0), 2.0),
        (torch.ones(2, requires_grad=True), [1.0, 1.0]),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({1: 2, None: 3, np.int8(4): 5}, {"1": 2, "None": 3, "4": 5}),
        (float("nan"), "nan"),
        (-np.inf, "-inf"),
        (Colour.RED, "red"),
        (Length(3), 3),
        (Path("a") / "b", "a/b"),
        (re.compile("conv.*"), "conv.*"),
        (torch.device("cpu"), "cpu"),
        (torch.float16, "torch.float16"),
        (torch.optim.SGD, {"module": "torch.optim.sgd", "name": "SGD"}),
        (
            partial(json.dumps, indent=0),
            {"module": "json", "name": "dumps", "args": [], "kwargs": {"indent": 0}},
        ),
    ],
    ids=lambda value: str(value).partition(" at 0x")[0],
)
def test_a_value_is_stored_as_plain_json(value: object, stored: object) -> None:
    found = plain({"value": value}, "params", ONLY_NAMES)
    assert found == {"value": stored}
    assert type(found["value"]) is type(stored)
    assert json.loads(written_notes("config", found)) == found


@pytest.mark.parametrize(
    "value", [object(), b"bytes", {3}, torch.nn.Linear(1, 1), 1j, np.array([None]), iter([])]
)
def test_what_no_record_can_hold_is_a_type_error_with_its_place(value: object) -> None:
    with pytest.raises(TypeError, match=r"params\['model'\]\[1\]"):
        plain({"model": [0, value]}, "params", ONLY_NAMES)
    with pytest.raises(ParamError, match="has the key"):
        plain({(1, 2): 3}, "params", ONLY_NAMES)


def test_a_function_of_a_package_is_told_with_its_version() -> None:
    told = Origins().of(torch.nn.Linear)
    assert told == {
        "module": "torch.nn.modules.linear",
        "name": "Linear",
        "package": "torch",
        "version": torch.__version__,
    }


def test_a_function_of_a_script_is_told_with_the_state_of_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_script_of_mine.py").write_text("def network(): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import a_script_of_mine  # type: ignore[import-not-found]

    assert Origins().of(a_script_of_mine.network) == {
        "module": "a_script_of_mine",
        "name": "network",
    }
    here = Origins().of(test_what_no_record_can_hold_is_a_type_error_with_its_place)
    assert {*here.get("git", {"commit": 0})} >= {"commit"}


def test_a_callable_object_is_told_by_its_class() -> None:
    class Call:
        def __call__(self) -> None: ...

    assert ONLY_NAMES.of(Call())["name"].endswith("Call")


def test_a_dict_is_stored_as_it_was_given_with_its_defaults() -> None:
    model = read(ModelParams, {"func": torch.nn.Linear, "in_features": 2}, "model_params")
    assert plain(model, "model", ONLY_NAMES) == {
        "in_features": 2,
        "func": {"module": "torch.nn.modules.linear", "name": "Linear"},
        "seed": 0,
        "prefix": None,
        "devices": None,
        "trainable_scopes": None,
    }
