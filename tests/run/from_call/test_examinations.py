"""Examinations by a request: with the next call or the kept batch, and without a trace."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.record.format.notes import EXAMINATION
from notebook_probe.run.attach.requests import ExamineModel
from tests.run.conftest import Watch


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))


def train(model: nn.Module, n_steps: int) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(n_steps):
        torch.manual_seed(step)
        loss = model(torch.randn(4, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def reports(run: nbp.Run) -> list[tuple[int, dict[str, Any]]]:
    """Step and content of each report in the record."""
    return [
        (event.step, json.loads(event.detail))
        for event in run.all_events
        if event.kind == EXAMINATION
    ]


def test_a_request_is_answered_with_the_inputs_of_the_next_call(watch: Watch) -> None:
    model = network()
    run = watch(model, probes=None)
    ticket = run.controls.put(ExamineModel())
    train(model, 3)
    assert ticket.state == "applied"
    assert "inputs of its next call" in ticket.text
    [(step, found)] = reports(run)
    assert step == 2
    checks = {one["check"]: one["verdict"] for one in found["findings"]}
    assert checks["who trains"] == "good"
    assert "samples" in " ".join(checks)
    assert run.status().errors == ()


def test_the_kept_batch_is_taken_at_once_with_its_targets_and_loss(watch: Watch) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Softmax(-1))
    run = watch(model, probes=None)
    run.probe_batch(torch.ones(4, 3), torch.zeros(4, dtype=torch.long), F.cross_entropy)
    run.controls.put(ExamineModel())
    train(model, 2)
    [(step, found)] = reports(run)
    assert step == 0
    wrong = [one["text"] for one in found["findings"] if one["verdict"] == "wrong"]
    assert any("softmax" in text for text in wrong)


def test_weights_are_equal_bit_for_bit_with_and_without_it(watch: Watch) -> None:
    plain = network()
    want = train(plain, 4)
    model = network()
    run = watch(model, probes=None)
    run.controls.put(ExamineModel())
    assert train(model, 4) == want
    assert len(reports(run)) == 1
    for one, other in zip(model.state_dict().values(), plain.state_dict().values(), strict=True):
        assert torch.equal(one, other)


def test_what_cannot_be_examined_is_said_and_the_training_continues(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: nn.Module, memo: object) -> nn.Module:
        raise TypeError("holds a lock")

    model = network()
    monkeypatch.setattr(nn.Sequential, "__deepcopy__", refuse, raising=False)
    run = watch(model, probes=None)
    run.controls.put(ExamineModel())
    assert len(train(model, 3)) == 3
    [(_, found)] = reports(run)
    assert [one["verdict"] for one in found["findings"]] == ["unknown"]


def test_a_call_that_never_comes_leaves_no_hook(watch: Watch) -> None:
    model = network()
    run = watch(model, probes=None)
    train(model, 1)
    run.controls.put(ExamineModel())
    train(model, 1)
    run.close()
    assert reports(run) == []
    assert not model._forward_pre_hooks
