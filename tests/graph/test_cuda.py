"""On a CUDA device nothing changes either, its random numbers among it, and nothing is computed."""

from __future__ import annotations

import pytest
import torch

from notebook_probe.graph import building
from notebook_probe.graph.building import build
from tests.graph.untouched import assert_unchanged, state_of
from tests.models import ConvNet, made

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.mark.parametrize("how", ["exported", "called"])
def test_a_device_is_left_as_it_was(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "WAYS", {how: building.WAYS[how]})
    model = torch.nn.Sequential(made(ConvNet), torch.nn.Dropout(0.5)).cuda()
    batch = torch.randn(4, 1, 6, 6, device="cuda")
    model(batch).square().mean().backward()
    before, random = state_of(model), torch.cuda.get_rng_state()
    allocated = torch.cuda.memory_allocated()
    assert build(model, (batch,)).how == how
    assert_unchanged(model, before)
    assert torch.equal(torch.cuda.get_rng_state(), random)
    assert torch.cuda.memory_allocated() == allocated
