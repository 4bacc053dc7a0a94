"""What the route says about itself, the end of a cell, and the output of a background thread."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from comm import create_comm

from notebook_probe.explorer.kernel import KernelRoute, kernel_route
from notebook_probe.explorer.notebooks.notebook import NoNotebook
from tests.kernel.front_end import FrontEnd

NewPanel = Callable[..., tuple[str, str]]


def test_the_self_test_of_a_blocking_cell_reports_the_way_that_works(
    front_end: FrontEnd, new_panel: NewPanel
) -> None:
    name, _ = new_panel()
    expected = "pump" if front_end.version < (7,) else "own subshell"
    said = front_end.run(f"print(kernel_route().verify({name}.comm, timeout_s=60))")
    assert said == f"{expected}\n"


def test_a_self_test_without_an_answer_says_after_the_cell_until_one_succeeds(
    front_end: FrontEnd, new_panel: NewPanel
) -> None:
    (carried, _), (not_carried, _) = new_panel(), new_panel("carried=False")
    silent = f"print(kernel_route().verify({not_carried}.comm, timeout_s=0.1))"
    assert front_end.run(silent) == "after the cell\n"
    assert front_end.run("print(kernel_route().name)") == "after the cell\n"
    works = front_end.run(f"print(kernel_route().verify({carried}.comm, timeout_s=60))")
    assert works != "after the cell\n"


def test_an_answer_that_comes_late_takes_the_doubt_back(
    front_end: FrontEnd, new_panel: NewPanel
) -> None:
    if front_end.version < (7,):
        pytest.skip("the pump answers in the thread that asks, so never late")
    name, _ = new_panel()
    said = front_end.run(f"""
        gate = threading.Event()
        def late(message):
            gate.wait(60)
            kernel_route().answered(message["content"]["data"]["content"]["token"])
        {name}.comm.on_msg(late)
        print(kernel_route().verify({name}.comm, timeout_s=0.05))
        gate.set()
        while kernel_route().name == "after the cell":
            time.sleep(0.001)
        print(kernel_route().name)
        """)
    assert said == "after the cell\nown subshell\n"


def test_carrying_and_forgetting_twice_is_harmless(
    front_end: FrontEnd, new_panel: NewPanel
) -> None:
    name, _ = new_panel()
    once = f"kernel_route().carry({name}.comm)"
    assert front_end.run(f"{once}; {once}; print(kernel_route().verify({name}.comm, 60))")
    gone = f"kernel_route().forget({name}.comm)"
    assert front_end.run(f"{gone}; {gone}") == ""


def test_the_end_of_every_cell_is_told_until_it_is_removed(front_end: FrontEnd) -> None:
    front_end.run("ended = []; remove = kernel_route().on_cell_end(ended.append)")
    assert front_end.run("print(len(ended))") == "1\n"
    assert front_end.run("print(len(ended))") == "2\n"
    failing = front_end.send("execute_request", {"code": "1 / 0", "silent": False})
    front_end.finish(failing)
    front_end.run("remove(); remove()")
    errors = "[None, None, None, ZeroDivisionError('division by zero')]\n"
    assert front_end.run("print(ended)") == errors


def test_the_running_cell_has_the_front_ends_name(front_end: FrontEnd) -> None:
    assert front_end.run("print([kernel_route().cell])") == "['']\n", "this one told none"
    content = {"code": "print(kernel_route().cell)", "silent": False}
    asked = front_end.send("execute_request", content, metadata={"cellId": "a-cell"})
    front_end.finish(asked)
    assert front_end.text(asked) == "a-cell\n"


def test_without_a_kernel_everything_is_harmless() -> None:
    route = KernelRoute(NoNotebook())
    comm = create_comm(target_name="nowhere")
    route.carry(comm)
    route.pump()
    assert route.cell == ""
    route.answered("nobody asked")
    remove = route.on_cell_end(lambda _: pytest.fail("no cell can end"))
    remove()
    remove()
    route.forget(comm)
    assert route.verify(comm) == route.name == "no kernel"


def test_a_process_has_one_route() -> None:
    assert kernel_route() is kernel_route()
