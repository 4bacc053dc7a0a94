"""Loops that train in the background: waited for, and stopped."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.run.background import Background
from notebook_probe.train import Dataset, Loop
from notebook_probe.train.loop.runner import LoopRunner
from tests.train.conftest import a_loop, batches

Watched = Callable[..., nbp.Run]


def test_a_loop_trains_in_the_background_and_is_stopped_from_here() -> None:
    loop, reached = a_loop(), threading.Event()
    loop.on_step(lambda loop, metrics: reached.set())
    training = loop.start(batches(2), epochs=10**6)
    assert reached.wait(30)
    with pytest.raises(RuntimeError, match="the loop runs already"):
        loop.run_steps(batches(1), 1)
    loop.stop()
    assert training.wait(30) is not None
    assert loop.stopped
    with pytest.raises(ValueError, match=r"start\(steps=None, epochs=None\)"):
        loop.start(batches(1))


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_step_of_a_loop_in_the_background_is_waited_for(
    is_watched: bool, watched: Watched
) -> None:
    loop, go_on = a_loop(), threading.Event()
    if is_watched:
        watched(loop)
    loop.run_steps(batches(2), 2)
    loop.on_step(lambda loop, metrics: go_on.wait(30) if loop.loop_step == 7 else None)
    training = loop.start(batches(3), epochs=4)
    assert training.wait(30, step=6) is None
    assert 6 <= loop.loop_step <= 7
    assert training.running
    go_on.set()
    assert training.wait(30, step=99) is not None
    assert loop.loop_step == 14


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_stop_before_the_thread_has_begun_lets_no_batch_be_drawn(
    is_watched: bool, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_begin = threading.Event()
    train = LoopRunner.run

    def late(*args: Any) -> Any:
        assert may_begin.wait(30)
        return train(*args)

    monkeypatch.setattr(LoopRunner, "run", late)
    stops: list[Callable[[Loop, Background], None]] = [
        lambda loop, training: loop.stop("a mistake"),
        lambda loop, training: training.stop(),
    ]
    for stop in stops:
        loop, data = a_loop(), Dataset(batches(4))
        if is_watched:
            watched(loop)
        may_begin.clear()
        training = loop.start(data, epochs=1)
        with pytest.raises(RuntimeError, match="the loop runs already"):
            loop.start(data, epochs=1)
        stop(loop, training)
        may_begin.set()
        training.wait(30)
        assert (loop.loop_step, data.position, loop.stopped) == (0, 0, True)
        loop.run_epochs(data, 1)
        assert (loop.loop_step, loop.stopped) == (4, False)


def test_a_loop_that_cannot_start_in_the_background_can_be_run(watched: Watched) -> None:
    loop, may_end = a_loop(), threading.Event()
    run = watched(loop)
    other = run.train_in_background(lambda: may_end.wait(30))
    with pytest.raises(RuntimeError, match="training already runs in the background"):
        loop.start(batches(2), epochs=1)
    may_end.set()
    other.wait(30)
    assert loop.start(batches(2), steps=0).wait(30) is None
    loop.run_epochs(batches(2), 1)
    assert loop.loop_step == 2
