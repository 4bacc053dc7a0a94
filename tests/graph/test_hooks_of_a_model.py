"""Models that put hooks on themselves in their first call, as those of Hugging Face do."""

from __future__ import annotations

import pytest
import torch

from notebook_probe.graph import building
from notebook_probe.graph.building import build
from tests.graph.untouched import assert_unchanged, state_of
from tests.models import HooksItself


@pytest.mark.parametrize("way", ["exported", "called"])
def test_a_model_that_is_hooked_by_its_first_call_is_hooked_once(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "WAYS", {way: building.WAYS[way]})
    model, batch = HooksItself(), torch.ones(2, 4)
    before = state_of(model)
    assert build(model, (batch,)).how == way
    assert_unchanged(model, before)
    model(batch)
    assert model.heard == ["Linear", "ReLU"]
