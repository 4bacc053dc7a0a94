"""Where passes through the data begin and how many samples a step takes, noted by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import notebook_probe as nbp
from notebook_probe.compare import RunAxis
from notebook_probe.errors import UnknownNameError
from notebook_probe.run.loop.passes import EVERY_ONE, DataPasses, samples_per_batch
from notebook_probe.train import Loop, Trainer
from tests.record.build import LAW
from tests.run.conftest import Watch

Noted = list[tuple[int, str, dict[str, Any]]]


class Notebook:
    """Keeps what is noted; its steps are set by the test."""

    def __init__(self) -> None:
        self.step = 0
        self.noted: Noted = []

    def event(self, step: int, kind: str, text: str, detail: str = "") -> None:
        self.noted.append((step, kind, json.loads(detail)))

    def of(self, kind: str) -> dict[int, float]:
        """Step -> the number that was noted last."""
        [name] = {"epoch": ["epoch"], "samples": ["per_step"]}[kind]
        return {step: told[name] for step, one, told in self.noted if one == kind}


def loader(n: int, size: int, **options: Any) -> DataLoader[Any]:
    data = TensorDataset(torch.arange(n * 3.0).reshape(n, 3), torch.zeros(n, 1))
    return DataLoader(data, batch_size=size, **options)


def trained(run: nbp.Run, model: nn.Module, optimizer: Any, batches: Any, every: int = 1) -> None:
    """A bare loop that steps after so many batches, and at the end."""
    left = 0
    for x, _ in batches:
        model(x).square().mean().backward()
        left += 1
        if left == every:
            optimizer.step()
            left = 0
    if left:
        optimizer.step()


@pytest.fixture
def begun(watch: Watch) -> Callable[[], tuple[nbp.Run, nn.Module, Any]]:
    def begin() -> tuple[nbp.Run, nn.Module, Any]:
        model = nn.Sequential(nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        return watch(model, optimizer, probes=None), model, optimizer

    return begin


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_bare_loop_over_a_loader_is_compared_by_samples_and_by_epochs(
    begun: Any, every: int
) -> None:
    run, model, optimizer = begun()
    data = loader(10, 3)  # batches of 3, 3, 3 and 1
    ends = [0]
    for _ in range(3):
        trained(run, model, optimizer, run.batches(data), every)
        run.boundary()
        ends.append(run.status().step)
    run.batches([])._passes.begin([]).close()  # what was left over of the last pass is known
    steps_a_pass = -(-4 // every)
    assert ends == [steps_a_pass * k for k in range(4)]
    np.testing.assert_allclose(RunAxis(run, "samples").places.at(ends), [0, 10, 20, 30])
    np.testing.assert_allclose(RunAxis(run, "epochs").places.at(ends), [0, 1, 2, 3])


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_loop_notes_them_too_and_begins_no_epoch_amid_one(begun: Any, accumulate: int) -> None:
    run, model, optimizer = begun()
    trainer = Trainer(model, nn.functional.mse_loss, optimizer, accumulate=accumulate)
    loop = Loop(trainer, run, progress=False)
    data = loader(32, 4)
    for _ in range(3):
        loop.run_steps(data, 1)
    assert [one.step for one in run.events if one.kind == "epoch"] == [0]
    samples = RunAxis(run, "samples").places
    np.testing.assert_allclose(samples.at([0, 1, 3]), np.array([0, 4, 12]) * accumulate)


def test_who_validates_in_between_begins_no_epoch(begun: Any) -> None:
    run, model, optimizer = begun()
    data, held_back = loader(8, 4), loader(30, 10)
    for _ in range(2):
        trained(run, model, optimizer, run.batches(data))
        model.eval()
        with torch.no_grad():
            for x, _ in run.batches(held_back):
                model(x)
        model.train()
    run.boundary()
    assert [one.step for one in run.events if one.kind == "epoch"] == [0, 2]
    assert RunAxis(run, "samples").places.at([4]).tolist() == [16]


def test_what_a_loader_does_not_tell_is_not_noted(begun: Any) -> None:
    run, model, optimizer = begun()
    for _ in range(2):
        trained(run, model, optimizer, run.batches([(torch.ones(4, 3), 0)] * 3))
    run.boundary()
    assert RunAxis(run, "epochs").places.at([0, 3, 6]).tolist() == [0, 1, 2]
    with pytest.raises(UnknownNameError, match=r"run\.batches\(loader\)"):
        RunAxis(run, "samples")


def test_a_pass_that_an_error_left_open_keeps_no_later_one_from_being_noted() -> None:
    notes = Notebook()
    passes = DataPasses(notes, lambda: notes.step)
    left = passes.begin([0])
    left.draw()
    for epoch in range(2):
        one = passes.begin(loader(6, 2))
        for _ in range(3):
            one.draw()
            notes.step += 1
        one.exhaust()
        one.close()
        assert notes.of("epoch") == dict(zip([0, 3], range(epoch + 1), strict=False))
    assert notes.of("samples") == {0: 2.0}
    left.close()


def test_of_many_passes_few_are_noted_and_the_others_lie_evenly_between() -> None:
    notes = Notebook()
    passes = DataPasses(notes, lambda: notes.step)
    n = 40 * EVERY_ONE
    for _ in range(n):
        one = passes.begin([0])
        one.draw()
        notes.step += 1
        one.exhaust()
        one.close()
    found = notes.of("epoch")
    assert len(found) < 7 * EVERY_ONE
    assert all(step == epoch for step, epoch in found.items())
    assert set(range(EVERY_ONE)) <= found.keys()


@LAW
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 5), st.integers(1, 4)), max_size=6))
def test_after_each_pass_as_many_samples_are_noted_as_were_drawn(
    given_passes: list[tuple[int, int, int]],
) -> None:
    """Passes of ``n`` samples in batches of ``size``, ``every`` so many of which make a step."""
    notes = Notebook()
    passes = DataPasses(notes, lambda: notes.step)
    ends, drawn = [0], [0]
    for n, size, every in given_passes:
        one, n_batches = passes.begin(loader(n, size)), -(-n // size)
        for k in range(n_batches):
            one.draw()
            notes.step += (k + 1) % every == 0 or k + 1 == n_batches
        one.exhaust()
        one.close()
        passes.begin([]).close()
        ends.append(notes.step)
        drawn.append(drawn[-1] + n)
    begins, rates = [*notes.of("samples")], [*notes.of("samples").values()]
    order = np.argsort(begins)
    edges = np.array([*np.array(begins, int)[order], notes.step])
    counted = np.cumsum([0.0, *(np.diff(edges) * np.array(rates)[order])])
    np.testing.assert_allclose(np.interp(ends, edges, counted) if rates else [0], drawn)


def test_the_samples_of_a_step_are_noted_where_they_change_and_only_there() -> None:
    """At the first step of the pass, so that a reader in the middle of it sees them."""
    notes = Notebook()
    passes = DataPasses(notes, lambda: notes.step)
    seen = []
    for size in (4, 4, 4, 2, 2, 4):
        one = passes.begin(loader(8, size))
        for k in range(8 // size):
            one.draw()
            notes.step += 1
            if k:
                seen.append(notes.of("samples")[max(notes.of("samples"))] == size)
        one.exhaust()
        one.close()
    assert all(seen)
    told = [(step, detail["per_step"]) for step, kind, detail in notes.noted if kind == "samples"]
    assert told == [(0, 4), (6, 2), (14, 4)]


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


class Odd:
    batch_size = 4

    @property
    def sampler(self) -> object:
        raise ValueError("not now")


@pytest.mark.parametrize(
    ("given_loader", "wanted"),
    [
        (loader(10, 4), 10 / 3),
        (loader(10, 4, drop_last=True), 4.0),
        (DataLoader(Stream(), batch_size=2), 2.0),
        (DataLoader(Stream(), batch_size=None), None),
        ([1, 2, 3], None),
        (Odd(), 4.0),
    ],
)
def test_a_batch_is_as_large_as_the_loader_says(given_loader: Any, wanted: float | None) -> None:
    assert samples_per_batch(given_loader) == wanted
