"""Any history of a record is what a dictionary would hold: the last write of every cell.

Writers come and go, are killed, resumed at any step, branched, and written into out of order; each
is of one engine or the other. What is read live, from the store, and by xarray alone is compared
with plain dictionaries.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from notebook_probe.record import OpenedRecord, RecordWriter, Variable, open_record
from notebook_probe.record.format.missing import NOT_MEASURED, measured
from notebook_probe.record.views.xarray_views import XarrayViews
from notebook_probe.record.write import opening
from notebook_probe.record.write.streams.hot_chunks import HotChunks
from notebook_probe.record.write.streams.plain_chunks import PlainChunks
from tests.record.build import new_writer

PLACES, QUANTITIES = ("(root)", "fc"), ("loss", "norm")  # few, so that writes meet
SCHEDULES = {"every_1": 1, "every_3": 3}

Cell = tuple[str, str, int]
engines = st.sampled_from([HotChunks, PlainChunks])
columns = st.tuples(
    st.sampled_from([*SCHEDULES]), st.sampled_from(PLACES), st.sampled_from(QUANTITIES)
)


@dataclass
class Truth:
    """What the record should hold."""

    cells: dict[Cell, float] = field(default_factory=dict)
    """Of the newest branch."""
    in_order: set[int] = field(default_factory=set)
    """Steps of its rows that were written as the training went."""
    older: list[dict[Cell, float]] = field(default_factory=list)
    """Every earlier branch."""
    start: int = 0
    """First step of the newest branch."""

    @property
    def next_step(self) -> int:
        return max([self.start, *(step + 1 for step in self.in_order)])

    def cut(self, step: int) -> None:
        self.cells = {cell: value for cell, value in self.cells.items() if cell[2] < step}
        self.in_order = {one for one in self.in_order if one < step}


class Histories(RuleBasedStateMachine):
    """One record and its truth."""

    writer: RecordWriter

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp()) / "0.zarr"
        self.truth, self.published = Truth(), Truth()
        self.written: dict[Cell, set[float]] = {}
        self.active: set[tuple[str, str, str]] = set()
        self.step = 0
        self.n_values = 0

    # ------------------------------------------------------------ writers

    @initialize(engine=engines)
    def begin(self, engine: Any) -> None:
        self._open(engine, None)
        self.attach(("every_1", "fc", "norm"))

    def _open(self, engine: Any, resume: Any) -> None:
        with patch.object(opening, "new_chunks", engine):
            self.writer = new_writer(self.folder, resume=resume)
        self.step = self.writer.first_step
        self.published = deepcopy(self.truth)

    @rule(engine=engines, resume=st.sampled_from([None, True]))
    def reopen(self, engine: Any, resume: bool | None) -> None:
        self.writer.close()
        self._open(engine, resume)
        assert self.step == self.truth.next_step

    @rule(engine=engines, back=st.integers(-2, 8))
    def resume_at_a_step(self, engine: Any, back: int) -> None:
        self.writer.close()
        step = max(0, self.step - back)
        self.truth.cut(step)
        self.truth.start = min(self.truth.start, step)
        self._open(engine, step)
        assert self.step == step

    @precondition(lambda self: len(self.truth.older) < 3)
    @rule(engine=engines, back=st.integers(-2, 8))
    def branch(self, engine: Any, back: int) -> None:
        self.writer.close()
        step = max(0, self.step - back)
        self.truth.older.append(dict(self.truth.cells))
        self.truth.cut(step)
        self.truth.start = step
        self._open(engine, f"branch({step})")
        assert self.step == step

    @rule(engine=engines, half_way=st.booleans())
    def kill(self, engine: Any, half_way: bool) -> None:
        """The disk as ``kill -9`` leaves it: a copy, made between two commits or within one."""
        if half_way:
            files, write = self.writer._files, self.writer._files.write

            def die(key: str, content: bytes) -> None:
                if key == "zarr.json":
                    raise OSError("killed before the root was replaced")
                write(key, content)

            with patch.object(files, "write", die):
                self.writer.flush(60)
        copy = self.folder.with_name(f"{int(self.folder.stem) + 1}.zarr")
        shutil.copytree(self.folder, copy)
        self.writer.close()
        shutil.rmtree(self.folder)
        self.folder, self.truth = copy, deepcopy(self.published)
        self._open(engine, None)
        assert self.step == self.truth.next_step

    # ------------------------------------------------------------ rows

    @rule(column=columns)
    def attach(self, column: tuple[str, str, str]) -> None:
        schedule, place, quantity = column
        self.writer.stream(schedule).extend([place], [Variable(quantity)])
        self.active.add(column)

    @precondition(lambda self: self.active)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        self.active.discard(data.draw(st.sampled_from(sorted(self.active))))

    @rule(n_steps=st.integers(1, 5))
    def train(self, n_steps: int) -> None:
        for step in range(self.step, self.step + n_steps):
            # The stream with more rows comes first where two measure the same cell in one step.
            for schedule in ("every_3", "every_1"):
                self._record(schedule, step)
        self.step += n_steps

    def _record(self, schedule: str, step: int) -> None:
        mine = [
            (place, quantity) for name, place, quantity in sorted(self.active) if name == schedule
        ]
        mine = [
            (p, q) for p, q in mine if schedule == "every_1" or ("every_1", p, q) not in self.active
        ]
        if not mine or step % SCHEDULES[schedule]:
            return
        stream = self.writer.stream(schedule)
        stream.extend([place for place, _ in mine], [Variable(quantity) for _, quantity in mine])
        table = np.full(stream.shape, NOT_MEASURED, np.float32)
        for place, quantity in mine:
            table[stream.variable_index[quantity], stream.module_index[place]] = self._put(
                (place, quantity, step)
            )
        assert stream.record(step, step, table)
        self.truth.in_order.add(step)

    def _put(self, cell: Cell) -> float:
        self.n_values += 1
        self.truth.cells[cell] = float(self.n_values)
        self.written.setdefault(cell, set()).add(float(self.n_values))
        return float(self.n_values)

    @rule(
        place=st.sampled_from(PLACES),
        quantity=st.sampled_from(QUANTITIES),
        steps=st.lists(st.integers(0, 12), min_size=1, max_size=6),
    )
    def backfill(self, place: str, quantity: str, steps: list[int]) -> None:
        self.writer.backfill(
            place, quantity, steps, [self._put((place, quantity, s)) for s in steps]
        )

    @rule()
    def flush(self) -> None:
        assert self.writer.flush(60)
        self.published = deepcopy(self.truth)

    # ------------------------------------------------------------ readers

    @rule()
    def look_live(self) -> None:
        assert cells_of(self.writer.source) == self.truth.cells

    @rule()
    def look_at_the_store(self) -> None:
        assert cells_of(open_record(self.folder)) == self.published.cells
        for branch, cells in enumerate(self.published.older, 1):
            assert cells_of(OpenedRecord(self.folder, branch=branch)) == cells
        self._look_with_xarray_alone()

    def _look_with_xarray_alone(self) -> None:
        """Every group by itself: steps grow, and each value is one that was written there."""
        tree = xr.open_datatree(self.folder, engine="zarr")
        for node in tree["scalars"].children.values() if "scalars" in tree.children else ():
            data = node.to_dataset()
            assert (np.diff(data.step.values) > 0).all()
            for name in data.data_vars:
                for cell, value in cells_in(
                    data[name].transpose("module", "step"), str(name)
                ).items():
                    assert value in self.written[cell]

    def teardown(self) -> None:
        if hasattr(self, "writer"):
            self.look_live()
            self.writer.close()
            self.published = self.truth
            self.look_at_the_store()
        shutil.rmtree(self.folder.parent)


def cells_of(source: XarrayViews) -> dict[Cell, float]:
    """Everything that was measured, as a dictionary."""
    data = source.data
    found: dict[Cell, float] = {}
    for name in data.data_vars:
        found |= cells_in(data[name], str(name))
    return found


def cells_in(values: xr.DataArray, name: str) -> Mapping[Cell, float]:
    table = values.to_numpy()
    modules, steps = values.module.values.tolist(), values.step.values.tolist()
    return {
        (str(modules[m]), name, int(steps[s])): float(table[m, s])
        for m, s in zip(*measured(table).nonzero(), strict=True)
    }


QUICK = settings(
    max_examples=10,
    stateful_step_count=16,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_every_history_is_the_last_write_of_every_cell() -> None:
    run_state_machine_as_test(Histories, settings=QUICK)


@pytest.mark.crash
@pytest.mark.timeout(1800)
def test_long_histories_are_the_last_write_of_every_cell() -> None:
    run_state_machine_as_test(
        Histories, settings=settings(QUICK, max_examples=300, stateful_step_count=40)
    )
