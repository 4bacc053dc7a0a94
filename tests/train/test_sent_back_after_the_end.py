"""A loop that has ended is sent back by a click, and trains on in the background."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Control
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.train import Loop
from tests.train.checkpoints.kinds import same_state
from tests.train.test_sent_back import EPOCHS, STEPS, kept, plain, run_of


def wait_for_the_end() -> None:
    """Wait for the thread that a click has started, whichever run has it now."""
    for thread in threading.enumerate():
        if thread.name == "notebook-probe-training":
            thread.join(30)
            assert not thread.is_alive()


def learned(loop: Loop) -> dict[str, Any]:
    """A copy of the weights and of the optimizer; the averages are those of one run of the loop."""
    state = loop.trainer.state_dict()
    return copy.deepcopy({name: state[name] for name in ("model", "optimizer")})


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_it_trains_to_its_end_again_bit_for_bit(tmp_path: Path, closed: bool, whole: bool) -> None:
    loop, data = kept(tmp_path) if whole else plain(tmp_path, n=STEPS)
    first = run_of(loop)
    if whole:
        loop.run_epochs(data, EPOCHS)
    else:
        loop.run_steps(data, 5)
        loop.run_steps(data, STEPS - 5)
    losses = first.series("", "loss").values.tolist()
    before = learned(loop)
    assert first.controls.status_head().until == STEPS
    if closed:
        first.close()
    ticket = first.controls.put(GoBack(3))
    assert ticket.state == "applied", ticket.text
    assert ticket.text == "rewound to 3; training in the background, to step 12"
    wait_for_the_end()
    run = run_of(loop)
    assert run is not first
    assert first.closed
    assert run.series("", "loss").values.tolist() == losses
    assert run.series("", "loss").step.values.tolist() == [*range(STEPS)]
    assert same_state(learned(loop), before)
    assert nbp.open_run(tmp_path / "run.zarr", branch=1).series("", "loss").size == STEPS
    run.close()


def test_it_is_no_ended_run_while_it_goes_back_and_a_cell_cannot_start_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, data = plain(tmp_path, n=STEPS)
    first = run_of(loop)
    loop.run_steps(data, STEPS)
    load = loop.kept.load_before
    heads, refused = [], []

    def looked(step: int) -> Any:
        heads.append(first.controls.status_head())
        cell = threading.Thread(target=in_a_cell)
        cell.start()
        cell.join(30)
        return load(step)

    def in_a_cell() -> None:
        try:
            loop.run_steps(data, 1)
        except RuntimeError as error:
            refused.append(str(error))

    monkeypatch.setattr(loop.kept, "load_before", looked)
    first.controls.put(GoBack(6))
    wait_for_the_end()
    run = run_of(loop)
    assert refused == ["the loop goes back to an earlier step; wait() for it"]
    assert [(head.state, head.going_to) for head in heads] == [("training", 6)]
    assert run.controls.status_head().going_to == -1
    run.close()


def test_the_branch_can_be_stopped_and_sent_back_again(tmp_path: Path) -> None:
    loop, data = plain(tmp_path, n=STEPS)
    first = run_of(loop)
    loop.run_steps(data, STEPS)
    held: list[nbp.Run] = []

    def stop(loop: Loop, metrics: Any) -> None:
        if loop.n_updates == 8 and run_of(loop) is not first and not held:
            held.append(run_of(loop))
            run_of(loop).controls.put(Control("stop"))

    loop.on_step(stop)
    first.controls.put(GoBack(3))
    wait_for_the_end()
    second = run_of(loop)
    assert second is not first
    assert (loop.n_updates, loop.stopped) == (8, True)
    assert second.controls.status_head().until == STEPS, "where it was to end"
    ticket = second.controls.put(GoBack(6))
    assert ticket.state == "applied", ticket.text
    wait_for_the_end()
    run = run_of(loop)
    assert run is not second
    assert run.series("", "loss").step.values.tolist() == [*range(STEPS)]
    run.close()


def test_what_cannot_be_is_refused_and_the_run_stays(tmp_path: Path) -> None:
    loop, data = plain(tmp_path, n=STEPS)
    first = run_of(loop)
    assert first.controls.put(GoBack(3)).state == "queued", "a loop that has not begun"
    loop.run_steps(data, STEPS)
    for request, why in [
        (GoBack(STEPS), "nothing is left to do"),
        (GoBack(2), "no checkpoint at or before step 2"),
        (GoBack(3, rate=-1.0), "a positive number"),
    ]:
        ticket = first.controls.put(request)
        assert ticket.state == "refused"
        assert why in ticket.text
    assert run_of(loop) is first
    assert not first.closed
    first.close()


def test_the_panel_of_a_branch_that_was_left_sends_nothing_back(tmp_path: Path) -> None:
    loop, data = plain(tmp_path, n=STEPS)
    first = run_of(loop)
    loop.run_steps(data, STEPS)
    run = loop.rewind(6, data, probes=None)
    assert run is not None
    assert first.controls.status_head().until == -1
    assert first.controls.put(GoBack(3)).state == "refused"
    run.close()
