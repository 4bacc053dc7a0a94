"""Which parameter groups hold which modules is kept with the record."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import nn
from torch.optim import SGD, AdamW

import notebook_probe as nbp
from notebook_probe.record.format.notes import TRAINED, read_notes
from notebook_probe.run.facts.ownership import ownership_text
from tests.run.facts.trained import small, train_it


def test_groups_and_frozen_modules_are_kept_after_some_steps(tmp_path: Path) -> None:
    model = small()
    model[0].requires_grad_(False)
    optimizer = AdamW(
        [
            {"params": [model[2].weight], "weight_decay": 0.1},
            {"params": [model[2].bias], "lr": 0.5, "weight_decay": 0.0},
        ],
        lr=0.25,
    )
    train_it(tmp_path, model, [optimizer])
    kept = read_notes(nbp.open_run(tmp_path / "a.zarr").attrs, TRAINED)
    assert kept["modules"] == [
        {"trainable": False, "groups": [], "names": ["0"]},
        {"trainable": True, "groups": [0, 1], "names": ["2"]},
    ]
    assert [(one["optimizer"], one["lr"]) for one in kept["groups"]] == [
        ("AdamW", 0.25),
        ("AdamW", 0.5),
    ]


def test_they_are_kept_again_after_a_change_of_the_model(tmp_path: Path) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=0.1)

    def then(step: int) -> None:
        if step == 25:
            model[2] = nn.Linear(8, 2)
            optimizer.add_param_group({"params": [*model[2].parameters()]})

    train_it(tmp_path, model, [optimizer], n_steps=60, then=then)
    kept = read_notes(nbp.open_run(tmp_path / "a.zarr").attrs, TRAINED)
    assert kept["modules"] == [
        {"trainable": True, "groups": [0], "names": ["0"]},
        {"trainable": True, "groups": [1], "names": ["2"]},
    ]


def test_a_rate_on_a_device_is_not_waited_for() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1), foreach=False)
    told = json.loads(ownership_text({"": model}, [optimizer]))
    assert told["groups"][0]["lr"] is None
    assert told["modules"][0]["names"] == ["(root)"]
