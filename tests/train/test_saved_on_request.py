"""A loop that is asked for a checkpoint between two steps, also from another process."""

from __future__ import annotations

from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.run.going_back.requests import GoBack, SaveCheckpoint
from notebook_probe.run.remote_control.asking import ask_run
from tests.run.loops import PATIENCE_S, wait_until
from tests.train.checkpoints.kinds import loop_of, same_state
from tests.train.conftest import a_loop, batches
from tests.train.test_sent_back import QUIET, ask_at, kept, run_of


def test_a_saved_state_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    never, data = kept(tmp_path / "never")
    never.start(data, epochs=3).wait()
    run_of(never).close()
    loop, data = kept(tmp_path / "asked")
    tickets = ask_at(loop, 5, SaveCheckpoint())
    loop.start(data, epochs=2).wait()
    loop.kept.wait()
    run_of(loop).close()
    assert tickets[0].state == "applied", tickets[0].text
    assert tickets[0].applied_step == 5
    assert tickets[0].text == f"checkpoint of step 5 in {tmp_path / 'asked' / 'kept'}"

    again, data = loop_of("mlp")
    assert again.load_checkpoint(tmp_path / "asked" / "kept", 5).step == 5
    again.start(data, epochs=3).wait()
    assert same_state(again.trainer.state_dict(), never.trainer.state_dict())


def test_a_loop_without_a_folder_says_how_to_name_one(tmp_path: Path) -> None:
    loop = a_loop()
    loop.watch(store=tmp_path / "run.zarr", **QUIET)
    tickets = ask_at(loop, 2, SaveCheckpoint())
    loop.start(batches(4), steps=4).wait()
    run_of(loop).close()
    assert (tickets[0].state, "Checkpoints(folder)" in tickets[0].text) == ("refused", True)


@pytest.mark.slow
def test_another_process_saves_and_goes_back_and_reaches_the_branch(tmp_path: Path) -> None:
    loop, data = kept(tmp_path, control=True)
    place = tmp_path / "run.zarr"
    first = run_of(loop)
    first.pause_when(step=8)
    job = loop.start(data, epochs=3)
    try:
        wait_until(lambda: first.controls.status_head().state == "paused")
        found = [
            ask_run(place, SaveCheckpoint(), "a test", PATIENCE_S),
            ask_run(place, GoBack(6, pause_at=7), "a test", PATIENCE_S),
        ]
        wait_until(lambda: loop.run not in (None, first))
        wait_until(lambda: run_of(loop).controls.status_head().state == "paused")
        found.append(ask_run(place, SaveCheckpoint(), "a test", PATIENCE_S))
    finally:
        if loop.run is not None and not loop.run.closed:
            for one in loop.run.breakpoints:  # a branch has those of the run before
                one.remove()
            loop.run.resume()
    job.wait()
    run_of(loop).close()
    answers = [one.answer for one in found if one.answer is not None]
    assert [(one.state, one.applied_step) for one in answers] == [
        ("applied", 8),
        ("applied", 8),
        ("applied", 7),
    ], answers
    events = [one.text for one in nbp.open_run(place).all_events if one.kind == "remote"]
    assert [text.partition(",")[0] for text in events] == ["checkpoint", "rewind", "checkpoint"]
