"""The threads in which views are drawn."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import notebook_probe as nbp
from notebook_probe.explorer.draw.drawing import Drawing, PanelState
from notebook_probe.explorer.draw.worker import Worker
from tests.explorer.draw.panel_side import HOME, PanelSide


def test_a_view_is_drawn_in_a_thread_of_its_own_that_ends_with_it() -> None:
    names, shown = [], threading.Event()

    @nbp.view("where")
    def where(source: Any, selection: Any) -> None:
        names.append(threading.current_thread())

    drawing = Drawing(where, PanelSide().source)
    moment = PanelState(1, HOME, "training", 1)
    drawing.offer(moment, (600, 1.0), 1, lambda name, frame: shown.set())
    assert shown.wait(60)
    [thread] = names
    assert thread.name == "notebook_probe view where"
    assert thread.daemon
    drawing.close()
    drawing.close()
    thread.join(60)
    assert not thread.is_alive()


def test_a_thread_ends_with_who_holds_it_and_holds_nothing_it_was_given() -> None:
    worker, done = Worker("test"), threading.Event()
    threads: list[threading.Thread] = []

    class Task:
        def __call__(self) -> None:
            threads.append(threading.current_thread())
            done.set()

    task = Task()
    held = weakref.ref(task)
    worker.do(task)
    assert done.wait(60)
    done.clear()
    worker.do(done.set)
    assert done.wait(60)
    del task
    gc.collect()
    assert held() is None
    del worker
    gc.collect()
    threads[0].join(60)
    assert not threads[0].is_alive()
