"""What an interrupt cannot be kept from, the run says."""

from __future__ import annotations

import pytest
import torch

from notebook_probe.errors import RecordWarning
from notebook_probe.run.rows.row_keeper import RowKeeper
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)


def test_a_gradient_mode_that_torch_has_left_off_is_reported(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    train_step(model, sgd(model), batch(0))
    with torch.enable_grad():  # which puts it back for other tests
        torch._C._set_grad_enabled(False)
        with pytest.warns(UserWarning, match="left torch's gradient mode off"):
            run.controls.settle(KeyboardInterrupt())
    assert [event.text for event in run.events if "gradient mode" in event.text]


def test_an_interrupt_with_the_mode_on_is_not_reported(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    train_step(model, sgd(model), batch(0))
    run.controls.settle(KeyboardInterrupt())
    assert not run.events


def test_rows_whose_handing_on_is_broken_off_are_counted(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(mlp)
    run, optimizer = watch(model, probes={"0": ["output_norm"]}), sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    run.controls.settle()
    monkeypatch.setattr(RowKeeper, "rows", _interrupted)
    train_step(model, optimizer, batch(3))
    train_step(model, optimizer, batch(4))
    with pytest.raises(KeyboardInterrupt):
        run.controls.settle()
    monkeypatch.undo()
    assert run.status().dropped_rows == 2
    with pytest.warns(RecordWarning, match="2 rows were lost: step 3: KeyboardInterrupt"):
        run.close()


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
