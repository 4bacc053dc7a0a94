"""Texts and sounds of a record as views of a panel, with those of a compared run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import notebook_probe as nbp
from notebook_probe.explorer.draw.view import fresh_selection
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.summary.views.audio import RATE, sounds
from notebook_probe.summary.views.texts import texts


def recorded(place: Path, name: str, rate: object = None) -> nbp.OpenedRun:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nbp.watch(model, optimizer, store=place, name=name, probes=None) as run:
        if rate is not None:
            run.annotate(sample_rate=rate)
        for step in range(3):
            model(torch.randn(1, 1)).sum().backward()
            run.log_array("said_audio", torch.linspace(-1, 1, 5) * step)
            run.note("sample", f"{name} {step}")
            if step:
                run.note("sample", "again")
            optimizer.step()
    return nbp.open_run(place)


def beside(run: nbp.OpenedRun, *others: Path) -> PanelSelection:
    return replace(fresh_selection(run), others=tuple(map(str, others)))


def only(drawn: Any) -> dict[str, Any]:
    [one] = drawn["series"]
    return dict(one)


def test_notes_are_texts_by_kind_and_step(tmp_path: Path) -> None:
    run = recorded(tmp_path / "a.zarr", "a")
    one = only(texts(run, beside(run)))
    assert (one["name"], one["steps"]) == ("sample", [0, 1, 2])
    assert one["texts"] == ["a 0", "a 1\n\nagain", "a 2\n\nagain"]
    assert one["beside"] is None


def test_the_first_compared_run_stands_beside_it_and_grows(tmp_path: Path) -> None:
    run = recorded(tmp_path / "a.zarr", "a")
    recorded(tmp_path / "b.zarr", "b")
    drawn = texts(run, beside(run, tmp_path / "b.zarr", tmp_path / "a.zarr"))
    assert drawn is not None
    assert drawn["run"] == "a"
    there = only(drawn)["beside"]
    assert (there["run"], there["texts"][0]) == ("b", "b 0")
    model = torch.nn.Linear(1, 1)
    with nbp.watch(model, store=tmp_path / "b.zarr", step=3, probes=None) as more:
        more.note("sample", "b more")
    there = only(texts(run, beside(run, tmp_path / "b.zarr")))["beside"]
    assert there["texts"][-1] == "b more"


def test_a_compared_run_that_is_gone_leaves_this_one_alone(tmp_path: Path) -> None:
    run = recorded(tmp_path / "a.zarr", "a")
    assert only(texts(run, beside(run, tmp_path / "gone.zarr")))["beside"] is None


@pytest.mark.parametrize(
    ("given", "rate"), [(None, RATE), (22_050, 22_050), ("fast", RATE), (1e12, RATE)], ids=str
)
def test_sounds_are_samples_at_the_rate_that_was_noted(
    tmp_path: Path, given: object, rate: int
) -> None:
    run = recorded(tmp_path / "a.zarr", "a", given)
    one = only(sounds(run, beside(run)))
    assert one["rate"] == rate
    expected = np.linspace(-1, 1, 5)[None] * np.arange(3)[:, None]
    np.testing.assert_allclose(one["samples"], expected, atol=1e-6)
    assert one["samples"].dtype == np.float32


def test_without_notes_and_sounds_there_is_nothing_to_show(tmp_path: Path) -> None:
    model = torch.nn.Linear(1, 1)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=None):
        pass
    run = nbp.open_run(tmp_path / "a.zarr")
    assert texts(run, beside(run)) is None
    assert sounds(run, beside(run)) is None
