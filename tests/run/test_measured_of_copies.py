"""What another thread measures of copies is what the training thread would have measured."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.probes.reading import copies
from notebook_probe.probes.reading.cells import Cell
from notebook_probe.probes.reading.copies import Copied
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.quantities.catalogue import equal_bins
from notebook_probe.quantities.catalogue.equal_bins import BINS, Extremes, extremes
from notebook_probe.quantities.reduce.reductions import measuring
from notebook_probe.summary.items.histograms import QUANTITIES
from tests.run.conftest import Watch
from tests.run.traces import our_threads

WANTED = frozenset({BINS})
NAMES = ("0.weight", "0.bias", "1.weight")


def a_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(128, 128), nn.Linear(128, 128))  # enough elements for copies


def trainer(model: nn.Module) -> tuple[torch.optim.Optimizer, Callable[[int], None]]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    inputs = torch.randn(4, 128, generator=torch.Generator().manual_seed(1))

    def train(n: int) -> None:
        for _ in range(n):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()

    return optimizer, train


def values(run: nbp.Run) -> dict[tuple[str, str], tuple[list[int], bytes]]:
    series = {(name, q): run.series(name, q) for name in NAMES for q in QUANTITIES}
    return {at: (one.step.values.tolist(), one.values.tobytes()) for at, one in series.items()}


class Door:
    """Holds the thread that measures copies until it is opened."""

    def __init__(self) -> None:
        self.opened, self.n_inside = threading.Event(), 0

    def __call__(self, values: Tensor, found: Extremes) -> Tensor:
        if threading.current_thread().name.startswith("notebook_probe copies"):
            self.n_inside += 1
            assert self.opened.wait(60)
        return BINS_HERE(values, found)


BINS_HERE = equal_bins._bins_here


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    one = Door()
    monkeypatch.setattr(equal_bins, "_bins_here", one)
    yield one
    one.opened.set()


def test_values_steps_and_weights_are_those_of_measuring_at_once(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(watched: bool) -> tuple[nn.Module, nbp.Run | None]:
        model = a_model()
        optimizer, train = trainer(model)
        run = watch(model, optimizer, probes=None) if watched else None
        if run is not None:
            run.attach([*NAMES], QUANTITIES, nbp.Every(2))
        train(4)
        with torch.no_grad():
            next(model.parameters())[0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
        train(3)
        return model, run

    beside, run = trained(True)
    assert run is not None
    assert run.probes()
    monkeypatch.setattr(copies, "ENOUGH", 1 << 60)
    at_once, other = trained(True)
    assert other is not None
    assert values(run) == values(other)
    assert run.series("0.weight", "n_weight_nan").values.tolist()[:3] == [0, 0, 1]
    plain, _ = trained(False)
    for one in (beside, at_once):
        for mine, theirs in zip(one.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


def test_a_training_goes_on_while_copies_wait_and_the_rows_come_in_their_order(
    watch: Watch, door: Door
) -> None:
    model = a_model()
    optimizer, train = trainer(model)
    run = watch(model, optimizer, probes=None)
    run.attach([*NAMES], QUANTITIES, nbp.Every(2))
    train(6)  # is not held
    assert door.n_inside <= 1
    door.opened.set()
    assert run.series("1.weight", "weight_min").step.values.tolist() == [0, 2, 4]


def test_beyond_what_may_wait_a_step_is_measured_as_it_closes(
    watch: Watch, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "MOST_STEPS", 2)
    begun: list[int] = []
    begin = copies.Copies.begin

    def counted(self: copies.Copies, frame: StepFrame) -> None:
        begin(self, frame)
        begun.append(len(self._waiting))

    monkeypatch.setattr(copies.Copies, "begin", counted)
    model = a_model()
    optimizer, train = trainer(model)
    run = watch(model, optimizer, probes=None)
    run.attach([*NAMES], QUANTITIES)
    train(9)
    assert max(begun) == 2
    door.opened.set()
    run.close()
    assert run.series("0.weight", "param_histogram").step.values.tolist() == [*range(9)]


def test_closing_measures_what_waits_and_leaves_no_thread(watch: Watch, door: Door) -> None:
    model = a_model()
    optimizer, train = trainer(model)
    run = watch(model, optimizer, probes=None)
    run.attach([*NAMES], QUANTITIES)
    train(3)
    threading.Timer(0.0, door.opened.set).start()
    run.close()
    assert run.series("0.weight", "weight_sum").step.values.tolist() == [0, 1, 2]
    assert not [name for name in our_threads() if "copies" in name]


def test_an_error_in_the_thread_is_its_probes_and_disables_them(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(values: Tensor, found: Extremes) -> Tensor:
        raise ValueError("too odd")

    monkeypatch.setattr(equal_bins, "_bins_here", broken)
    model = a_model()
    optimizer, train = trainer(model)
    run = watch(model, optimizer, probes=None)
    run.attach("0.weight", "param_histogram")
    run.attach("0.weight", "weight_norm")
    for _ in range(8):
        train(1)
        run.probes()  # waits
    by_name = {one.quantity: one for one in run.probes()}
    assert by_name["param_histogram"].disabled
    assert "too odd" in by_name["param_histogram"].error
    assert by_name["weight_norm"].n_values == 7


@settings(max_examples=40, deadline=None)
@given(
    n=st.sampled_from([0, 1, 7, 5000]),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]),
    scale=st.sampled_from([1e-40, 1e-3, 1.0, 1e30]),
    others=st.lists(st.sampled_from([torch.nan, torch.inf, -torch.inf]), max_size=3),
)
def test_a_copy_is_of_the_moment_whatever_it_holds(
    n: int, dtype: torch.dtype, scale: float, others: list[float]
) -> None:
    weight = torch.randn(n, generator=torch.Generator().manual_seed(n)) * scale
    weight = torch.cat([weight, torch.tensor(others)]).to(dtype).requires_grad_()
    want = extremes(weight.detach().clone(), None, WANTED)
    copied = Copied(Cell(0, measuring(BINS), WANTED), weight, {})
    with torch.no_grad():
        weight.zero_()
    frame = StepFrame(0, None, 1)
    copied.put(frame)
    for part in ("low", "high", "total", "counts", "bins"):
        mine, theirs = getattr(frame.states[0], part), getattr(want, part)
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy(), part)


def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied = Copied(Cell(0, measuring(BINS), WANTED), torch.ones(3), {})
    copied.begun(Future())  # never done
    assert not copied.has_come
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    frame = StepFrame(0, None, 1)
    copied.put(frame)
    assert frame.states == [None]


def test_who_looks_at_an_open_step_sees_what_it_has_measured_of_copies(watch: Watch) -> None:
    model = a_model()
    optimizer, train = trainer(model)
    run = watch(model, optimizer, probes=None)
    run.attach([*NAMES], QUANTITIES)
    train(2)  # the second step is open until the next forward
    assert run.series("0.weight", "param_histogram").step.values.tolist() == [0, 1]


def test_a_parameter_that_has_grown_is_copied_into_new_memory() -> None:
    cell, spare = Cell(0, measuring(BINS), WANTED), dict[Cell, Tensor]()
    for n in (3, 3, 4):
        frame = StepFrame(n, None, 1)
        Copied(cell, torch.ones(n), spare).put(frame)
        assert float(frame.states[0].total) == n
        assert [len(one) for one in spare.values()] == [n]
