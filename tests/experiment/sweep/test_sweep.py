"""Sweeps: which configurations there are, what their ids depend on, and what is refused."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import notebook_probe as nbp
from notebook_probe.experiment.sweep import choice, integers, log_uniform, uniform

SPACE = {"learning_rate_params.learning_rate": [0.1, 0.01], "model_params.depth": [1, 2, 3]}
BASE: dict[str, Any] = {"model_params": {"width": 8, "func": torch.nn.Linear}, "train_params": {}}
DRAWN = {
    "lr": log_uniform(1e-4, 1e-1),
    "model.depth": integers(1, 4),
    "dropout": uniform(0, 0.5),
    "optimizer": ["SGD", "AdamW"],
    "layer": choice(torch.nn.ReLU, torch.nn.GELU),
}


def test_a_grid_is_every_combination_in_order() -> None:
    found = nbp.sweep(SPACE, BASE)
    pairs = [
        (one["learning_rate_params"]["learning_rate"], one["model_params"]["depth"])
        for one in found
    ]
    assert pairs == [*itertools.product([0.1, 0.01], [1, 2, 3])]
    assert all(one["model_params"]["func"] is torch.nn.Linear for one in found)
    assert len(nbp.sweep(SPACE, BASE, n=4)) == 4
    assert found[0].name == "learning_rate 0.1, depth 1"
    assert repr(found).splitlines()[1] == f"{found[0].id}  learning_rate 0.1, depth 1"


def test_what_was_given_is_not_changed_and_nothing_is_shared() -> None:
    base: dict[str, Any] = {"model_params": {"width": 8, "sizes": [1]}}
    found = nbp.sweep({"model_params.depth": [1, 2]}, base)
    found[0]["model_params"]["sizes"].append(2)
    assert base == {"model_params": {"width": 8, "sizes": [1]}}
    assert found[1]["model_params"]["sizes"] == [1]


@pytest.mark.slow
def test_an_id_is_the_same_in_another_process() -> None:
    code = (
        "import notebook_probe as nbp; "
        "print([one.id for one in nbp.sweep({'b': [1, 2.5], 'a.c': ['x', None]}, {'z': len})])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    here = [one.id for one in nbp.sweep({"b": [1, 2.5], "a.c": ["x", None]}, {"z": len})]
    assert told.stdout.strip() == str(here)


def test_ids_differ_where_configurations_do() -> None:
    ids = {one.id for one in nbp.sweep(SPACE, BASE)}
    assert len(ids) == 6
    assert not ids & {one.id for one in nbp.sweep(SPACE, {**BASE, "more": 1})}
    assert ids == {one.id for one in nbp.sweep(dict(reversed(SPACE.items())), BASE)}
    same = nbp.sweep({"lr": [0.5, np.float64(0.5)]})
    assert len(same) == 1, "none comes twice"


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_a_longer_search_begins_with_the_shorter_one(seed: int, n: int) -> None:
    longer = nbp.sweep(DRAWN, kind="random", n=20, seed=seed)
    shorter = nbp.sweep(DRAWN, kind="random", n=n, seed=seed)
    assert [one.id for one in shorter] == [one.id for one in longer][:n]
    for one in longer:
        assert 1e-4 <= one["lr"] <= 1e-1
        assert 0 <= one["dropout"] <= 0.5
        assert one["model"]["depth"] in (1, 2, 3, 4)
        assert one["optimizer"] in ("SGD", "AdamW")


def test_another_name_in_the_space_changes_no_other_value() -> None:
    one = nbp.sweep({"lr": DRAWN["lr"]}, kind="random", n=9, seed=3)
    two = nbp.sweep({"width": integers(8, 4096), "lr": DRAWN["lr"]}, kind="random", n=9, seed=3)
    assert [each["lr"] for each in one] == [each["lr"] for each in two]


def test_draws_have_the_distribution_that_is_said() -> None:
    generator = np.random.default_rng(0)
    logs = [math.log10(log_uniform(1e-4, 1e-1).sample(generator)) for _ in range(4000)]
    counts = np.histogram(logs, bins=3, range=(-4, -1))[0]
    assert np.abs(counts / 4000 - 1 / 3).max() < 0.03  # 4 standard errors
    flat = [uniform(2, 4).sample(generator) for _ in range(4000)]
    assert abs(np.mean(flat) - 3) < 4 * (2 / math.sqrt(12)) / math.sqrt(4000)
    whole = [integers(1, 4).sample(generator) for _ in range(4000)]
    assert np.abs(np.bincount(whole)[1:] / 4000 - 1 / 4).max() < 0.03


def test_a_search_over_few_values_ends() -> None:
    assert len(nbp.sweep({"depth": [1, 2]}, kind="random", n=50)) == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "gird"}, "'grid' or 'random'"),
        ({"kind": "random"}, "needs n"),
        ({"n": 0}, "at least 1"),
        ({"space": {"lr": []}}, "lr: there are no values"),
        ({"space": {"lr": 0.1}}, "lr: a list of values"),
        ({"space": {"lr": "fast"}}, "lr: a grid needs a list"),
        ({"space": {"lr": log_uniform(1, 2)}}, "lr: a grid needs a list"),
        ({"space": {"model": [1], "model.depth": [2]}}, "model is 1, not a dict"),
        ({"space": {"model": [object()]}}, "cannot be recognized"),
    ],
)
def test_what_is_no_sweep_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        nbp.sweep(**{"space": {"lr": [0.1]}, **given})


@pytest.mark.parametrize(
    "make",
    [
        lambda: uniform(1, 1),
        lambda: uniform(0, math.inf),
        lambda: log_uniform(0, 1),
        lambda: log_uniform(math.nan, 1),
        lambda: integers(0.5, 2),  # type: ignore[arg-type]
        choice,
    ],
)
def test_what_is_no_distribution_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        make()


def test_a_space_without_a_name_is_none() -> None:
    with pytest.raises(ValueError, match=r"sweep\({}\): a space has at least one name"):
        nbp.sweep({})


@pytest.mark.parametrize("path", [3, "", "a..b", "a.", " "])
def test_what_is_no_name_of_a_space_is_refused(path: Any) -> None:
    with pytest.raises(ValueError, match=f"{path!r} is no name; names with dots are"):
        nbp.sweep({path: [1]})


def test_what_is_no_space_is_refused() -> None:
    with pytest.raises(TypeError, match=r"sweep\(\[1, 2\]\): values by names are expected"):
        nbp.sweep([1, 2])  # type: ignore[arg-type]
