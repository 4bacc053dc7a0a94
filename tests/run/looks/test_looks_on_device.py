"""A look at a module on an accelerator: the host's tensors and facts, and no step waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.looks import LOOK, looks_of
from tests.models import floats, made, mlp
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.run.accelerator import NAME, Accelerator, moved, on_device, waits

pytestmark = pytest.mark.slow

batch = floats(5, 4)


def looked(folder: Path, is_on_device: bool) -> dict[str, Any]:
    """Look at a layer in each of some steps; its tensors and facts, and how often a step waited."""
    never_by_itself()
    model = moved(made(mlp)) if is_on_device else made(mlp)
    put = on_device if is_on_device else torch.Tensor.clone
    run = nbp.watch(model, store=folder / "run.zarr", probes=None)
    optimizer = SGD(model.parameters(), lr=0.1, foreach=False)
    waits.clear()
    for step in range(3):
        run.look("0")
        given = batch(step)
        given[0, 0] = torch.inf if step == 1 else 0.0
        optimizer.zero_grad()
        loss_on(model(put(given))).backward()
        optimizer.step()
    waited = [*waits]
    run.close()
    events = [event for event in run.events if not any(_is_batch(event))]
    looks = looks_of(events, dict)
    return {
        "waits": waited,
        "told": sum(event.kind == LOOK for event in events),
        "facts": [look.facts["input"].plain() for look in looks],
    }


def _is_batch(event: Event) -> Iterator[bool]:
    """Yield True for the batch with infinity, which the host keeps at its alert, too."""
    return (look.is_batch for look in looks_of([event], dict))


def test_looks_wait_for_nothing_and_see_what_the_host_sees(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    found = accelerator.run(looked, tmp_path / "device", True)
    want = accelerator.run(looked, tmp_path / "host", False)
    assert found["waits"] == []
    assert found["told"] == want["told"] == 3
    assert [one["nonfinite"] for one in want["facts"]] == [0, 1, 0]
    for mine, its in zip(want["facts"], found["facts"], strict=True):
        assert (its.pop("shape"), its.pop("device")) == (mine.pop("shape"), f"{NAME}:0")
        mine.pop("device")
        assert its == pytest.approx(mine)
