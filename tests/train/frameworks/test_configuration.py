"""Settings of a trainer are recorded as plain values, and its secrets are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from notebook_probe.train.frameworks.configuration import recordable

TOKEN = "hf_" + "a1B2" * 8


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hub_token", "x"),
        ("token", "x"),
        ("WANDB_API_KEY", "x"),
        ("aws.secret_key", "x"),
        ("password", "x"),
        ("auth", {"user": "x"}),
        ("push", {"deep": [{"access_token": "x"}]}),
        ("note", f"use {TOKEN} here"),
        ("storage", "postgresql://user:x@lab/db"),
        ("args", ["--remote", "https://user:x@lab"]),
    ],
)
def test_a_secret_is_not_recorded_wherever_it_is(name: str, value: Any) -> None:
    text = json.dumps(recordable({name: value, "lr": 0.1}))
    assert json.loads(text)["lr"] == 0.1
    assert "x" not in text.replace("postgresql", "").replace("https", "")
    assert TOKEN not in text


def test_what_only_looks_like_a_secret_is_recorded() -> None:
    config = {"pad_token_id": 0, "n_token": 3, "max_tokens": 9, "key": "loss", "tokens": [1, 2]}
    assert recordable(config) == config


def test_objects_become_short_text_that_is_the_same_in_every_process() -> None:
    class Schedule:
        """An object whose default text has its address."""

    found = recordable(
        {
            "dtype": torch.bfloat16,
            "folder": Path("out"),
            "targets": {"v_proj", "q_proj"},
            "schedule": Schedule(),
            "labels": {str(n): n for n in range(1000)},
            "rate": float("inf"),
            "seed": None,
        }
    )
    assert found["dtype"] == "torch.bfloat16"
    assert found["folder"] == "out"
    assert found["targets"] == ["q_proj", "v_proj"]
    assert found["schedule"].endswith("Schedule object>")
    assert found["labels"] == "1000 entries"
    assert found["rate"] == "inf"
    assert "seed" not in found


def test_the_settings_of_a_large_tool_are_recorded_each() -> None:
    config = {"axolotl": {f"setting_{n}": n for n in range(120)}}
    assert recordable(config) == config


def test_a_configuration_that_is_too_long_loses_whole_entries() -> None:
    found = recordable({"long": {str(n): "y" * 9000 for n in range(20)}, "lr": 0.1})
    assert found == {"lr": 0.1}
