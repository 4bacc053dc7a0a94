"""The device that a model is on, in words: in a run's status, and in the panel's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from notebook_probe.model.device import device_text
from tests.models import made, mlp
from tests.run.conftest import Watch, watch

__all__ = ["watch"]


def test_a_status_names_the_device_and_says_nothing_of_the_host(watch: Watch) -> None:
    on_host, elsewhere = made(mlp), made(mlp).to("meta")
    there = watch(elsewhere, probes=None).status()
    assert (there.device, "on disk; on meta" in str(there)) == ("meta", True)
    here = watch(on_host, probes=None).status()
    assert (here.device, "on cpu" in str(here)) == ("cpu", False)


def test_a_model_that_moves_is_where_it_is_now(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    model.to("meta")
    assert run.controls.status_head().device == "meta"


def test_a_model_without_parameters_is_on_no_device(watch: Watch) -> None:
    assert watch(nn.Sequential(nn.ReLU()), probes=None).status().device == ""


def test_a_cuda_device_has_the_name_of_its_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"Card {device.index}")
    assert device_text(torch.device("cuda", 1)) == "cuda:1, Card 1"
