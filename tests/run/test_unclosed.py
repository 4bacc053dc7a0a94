"""Programs that go on with a record and end without closing it: every row is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

import notebook_probe as nbp
from tests.run.programs import Programs

N_STEPS = 12
PROGRAM = f"""
import atexit, sys, threading
import torch
from torch import nn
import notebook_probe as nbp

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = nbp.watch(model, optimizer, store=sys.argv[1])

def step():
    loss = model(torch.randn(5, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def train(n):
    for _ in range(n):
        step()

train({N_STEPS})
"""
THREAD = """
def later():
    threading.main_thread().join()
    train(3)
    {last}

threading.Thread(target=later).start()
"""
ENDS: dict[str, tuple[str, int, int]] = {
    "after the last step": ("", 0, 0),
    "with a number": ("run.log(x=1.0)", 0, 0),
    "by sys.exit": ("sys.exit(3)", 0, 3),
    "by an error": ("raise ValueError('of the user')", 0, 1),
    "with a step at exit": ("atexit.register(step)", 1, 0),
    "with a thread that goes on": (THREAD.format(last=""), 3, 0),
    "with a thread that exits": (THREAD.format(last="sys.exit(1)"), 3, 0),
    "with a thread that logs": (THREAD.format(last="run.log(x=1.0)"), 3, 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_goes_on_with_a_record_leaves_all_its_rows_there(
    end: str, programs: Programs, tmp_path: Path
) -> None:
    last_words, n_more, code = ENDS[end]
    store = tmp_path / "r.zarr"
    for _ in range(3):
        done = programs.run(PROGRAM + last_words, str(store))
        assert done.code == code
        assert "notebook_probe" not in done.stderr
    record = nbp.open_run(store)
    assert record.finished
    assert record.data.step.values.tolist() == [*range(3 * (N_STEPS + n_more))]
    assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]
