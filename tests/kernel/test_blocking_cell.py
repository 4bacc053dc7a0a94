"""While a cell blocks, a panel's messages are answered and nobody else's are touched."""

from __future__ import annotations

import textwrap
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.kernel.front_end import FrontEnd

NewPanel = Callable[..., tuple[str, str]]


class Training:
    """A cell that blocks until its panel is told to stop."""

    def __init__(self, front_end: FrontEnd, panel: tuple[str, str], code: str = "") -> None:
        self.front_end = front_end
        self.name, self.comm_id = panel
        self.msg_id = front_end.execute(code or f"train_until_stopped({self.name})")
        self.wait_for_text("training")

    def click(self, n: int, subshell_id: str | None = None) -> str:
        content = {"type": "click", "n": n}
        return self.front_end.custom(self.comm_id, content, subshell_id=subshell_id)

    def wait_for_clicks(self, number: int) -> list[int]:
        """The numbers of the first clicks, as they were answered."""
        echoes = self.front_end.echoes
        self.front_end.until(lambda: len(echoes(self.comm_id)) >= number, f"{number} answers")
        assert self.running, "answered only after the cell"
        return [echo["n"] for echo in echoes(self.comm_id)]

    def wait_for_text(self, text: str) -> None:
        self.front_end.until(lambda: text in self.front_end.text(self.msg_id), text)

    @property
    def running(self) -> bool:
        return self.front_end.reply(self.msg_id) is None

    def stop(self) -> str:
        """Stop it by a click and return what it printed."""
        self.front_end.custom(self.comm_id, {"type": "stop"})
        assert self.front_end.finish(self.msg_id)["status"] == "ok"
        return self.front_end.text(self.msg_id)


@pytest.fixture
def training(front_end: FrontEnd, new_panel: NewPanel) -> Iterator[Training]:
    cell = Training(front_end, new_panel())
    yield cell
    if cell.running:
        cell.stop()


def no_subshell(front_end: FrontEnd) -> str | None:
    return None


def own_subshell(front_end: FrontEnd) -> str | None:
    return front_end.new_subshell()


def unknown_subshell(front_end: FrontEnd) -> str | None:
    return str(uuid.uuid4())


@pytest.mark.parametrize("address", [no_subshell, own_subshell, unknown_subshell])
def test_clicks_are_answered_in_order_while_the_cell_runs(
    front_end: FrontEnd, training: Training, address: Callable[[FrontEnd], str | None]
) -> None:
    subshell_id = address(front_end)
    sent = [training.click(n, subshell_id) for n in range(40)]
    assert training.wait_for_clicks(40) == list(range(40))
    front_end.until(lambda: all(map(front_end.is_idle, sent)), "every click is finished")
    assert training.stop() == "training\nstopped\n"


def test_clicks_keep_their_order_when_a_reload_brings_a_new_subshell(
    front_end: FrontEnd, training: Training
) -> None:
    for n in range(30):
        training.click(n, front_end.new_subshell() if n % 10 == 0 else None)
    assert training.wait_for_clicks(30) == list(range(30))


def test_buffers_and_metadata_arrive_unchanged(front_end: FrontEnd, training: Training) -> None:
    buffers, metadata = [b"\x00\x01\xff" * 1000, b"", b"last"], {"version": "2.1.0"}
    front_end.custom(
        training.comm_id, {"type": "click", "n": 0}, buffers=buffers, metadata=metadata
    )
    training.wait_for_clicks(1)
    (echo,) = front_end.from_comm(training.comm_id)
    assert [bytes(buffer) for buffer in echo["buffers"]] == buffers
    assert echo["metadata"] == metadata


def test_an_answer_names_the_click_that_caused_it(front_end: FrontEnd, training: Training) -> None:
    clicked = [training.click(n) for n in range(3)]
    training.wait_for_clicks(3)
    answers = front_end.from_comm(training.comm_id)
    assert [answer["parent_header"]["msg_id"] for answer in answers] == clicked


def test_a_callback_that_fails_stops_neither_the_cell_nor_the_next_click(
    front_end: FrontEnd, training: Training
) -> None:
    front_end.custom(training.comm_id, {"type": "fail"})
    training.click(1)
    assert training.wait_for_clicks(1) == [1]
    assert training.stop() == "training\nstopped\n"


@pytest.mark.slow
def test_other_requests_wait_for_the_cell_and_keep_their_order(
    front_end: FrontEnd, training: Training
) -> None:
    waiting = []
    for n in range(3):
        training.click(2 * n)
        waiting.append(front_end.execute(f"print('queued {n}')"))
        training.click(2 * n + 1)
        content = {"code": "training.st", "cursor_pos": 4}
        waiting.append(front_end.send("complete_request", content))
        waiting.append(front_end.send("inspect_request", {**content, "detail_level": 0}))
    assert training.wait_for_clicks(6) == list(range(6))
    assert not any(map(front_end.reply, waiting))
    training.stop()
    for msg_id in waiting:
        assert front_end.finish(msg_id)["status"] == "ok"
    answered = [reply["parent_header"]["msg_id"] for reply in front_end.replies]
    assert [msg_id for msg_id in answered if msg_id in waiting] == waiting
    assert front_end.text(waiting[0]) == "queued 0\n"


@pytest.mark.parametrize("forgotten", [False, True])
def test_comms_that_are_not_carried_wait_for_the_cell(
    front_end: FrontEnd, new_panel: NewPanel, training: Training, forgotten: bool
) -> None:
    training.stop()
    name, comm_id = new_panel("carried=False")
    if forgotten:
        route = "kernel_route()"
        front_end.run(f"{route}.carry({name}.comm); {route}.forget({name}.comm)")
    cell = Training(front_end, (training.name, training.comm_id))
    front_end.custom(comm_id, {"type": "click", "n": 0})
    front_end.custom(comm_id, {"type": "click", "n": 1})
    cell.click(7)
    front_end.until(lambda: {"type": "click", "n": 7} in front_end.echoes(cell.comm_id), "7")
    assert front_end.echoes(comm_id) == []
    cell.stop()
    front_end.until(lambda: len(front_end.echoes(comm_id)) == 2, "answers after the cell")
    assert [echo["n"] for echo in front_end.echoes(comm_id)] == [0, 1]
    assert all(m["content"]["data"]["on_main"] for m in front_end.from_comm(comm_id))


def test_a_live_slider_is_heard_while_the_cell_runs_and_another_after_it(
    front_end: FrontEnd, training: Training
) -> None:
    training.stop()
    code = """
        import ipywidgets, notebook_probe
        heard, plain = [], ipywidgets.IntSlider()
        box = notebook_probe.live(ipywidgets.VBox([ipywidgets.IntSlider()]))
        for each in (plain, *box.children):
            each.observe(lambda change: heard.append(change.new), "value")
            print(each.comm.comm_id)
        """
    plain, live = front_end.run(textwrap.dedent(code)).split()
    cell = Training(front_end, (training.name, training.comm_id))
    for comm_id, value in ((plain, 1), (live, 2)):
        moved = {"method": "update", "state": {"value": value}, "buffer_paths": []}
        front_end.send("comm_msg", {"comm_id": comm_id, "data": moved})
    front_end.until(lambda: front_end.from_comm(live), "the live one answers")
    assert cell.running, "answered only after the cell"
    assert not front_end.from_comm(plain)
    cell.stop()
    assert front_end.run("print(heard)") == "[2, 1]\n"


def test_what_the_cell_prints_stays_in_the_cell(front_end: FrontEnd, new_panel: NewPanel) -> None:
    name, comm_id = new_panel()
    code = f"""
        print("training")
        lines = 0
        while not {name}.stop.wait(0.001):
            kernel_route().pump()
            print("line", lines, flush=True)
            lines += 1
        """
    cell = Training(front_end, (name, comm_id), code)
    for n in range(20):
        cell.click(n)
        cell.wait_for_text(f"line {n}\n")
    cell.wait_for_clicks(20)
    printed = cell.stop().splitlines()[1:]
    assert printed == [f"line {n}" for n in range(len(printed))]


def test_an_interrupt_ends_the_cell_and_never_the_kernel(
    front_end: FrontEnd, training: Training
) -> None:
    training.click(0)
    training.wait_for_clicks(1)
    front_end.manager.interrupt_kernel()
    reply = front_end.finish(training.msg_id)
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    front_end.manager.interrupt_kernel()  # idle now: nothing to interrupt
    assert front_end.run("print('alive')") == "alive\n"


def test_an_interrupt_in_the_middle_of_a_pump_loses_no_request(
    front_end: FrontEnd, new_panel: NewPanel
) -> None:
    if front_end.version >= (7,):
        pytest.skip("only ipykernel 6 is pumped")
    code = """
        import signal
        kernel = get_ipython().kernel
        take = kernel.msg_queue.get_nowait
        def interrupted():
            entry = take()
            signal.raise_signal(signal.SIGINT)
            return entry
        print("training", flush=True)
        while kernel.msg_queue.qsize() < 2:
            kernel.shell_stream.flush()
        try:
            kernel.msg_queue.get_nowait = interrupted
            kernel_route().pump()
        finally:
            del kernel.msg_queue.get_nowait
        """
    cell = Training(front_end, new_panel(), code)
    content = {"code": "kernel.ms", "cursor_pos": 9}
    asked = [front_end.send("complete_request", content) for _ in range(2)]
    assert front_end.finish(cell.msg_id)["ename"] == "KeyboardInterrupt"
    assert [front_end.finish(msg_id)["status"] for msg_id in asked] == ["ok", "ok"]


def test_a_click_does_not_flush_the_figure_the_cell_is_drawing(
    front_end: FrontEnd, new_panel: NewPanel
) -> None:
    name, comm_id = new_panel()
    code = f"""
        flushed = []
        get_ipython().events.register("post_execute", flush := lambda: flushed.append(1))
        train_until_stopped({name})
        print(len(flushed), "flushed")
        get_ipython().events.unregister("post_execute", flush)
        """
    cell = Training(front_end, (name, comm_id), code)
    cell.click(0)
    cell.wait_for_clicks(1)
    assert cell.stop() == "training\nstopped\n0 flushed\n"


def test_a_page_that_is_loaded_again_is_told_of_its_widgets_while_the_cell_runs(
    front_end: FrontEnd, training: Training
) -> None:
    training.stop()
    front_end.run("import ipywidgets; slider = ipywidgets.IntSlider(value=42)")
    model = front_end.run("print(slider.model_id)").strip()
    cell = Training(front_end, (training.name, training.comm_id))
    asked = [front_end.send("kernel_info_request", {}), front_end.send("comm_info_request", {})]
    front_end.until(lambda: all(map(front_end.reply, asked)), "the page is connected")
    control = uuid.uuid4().hex
    opened = {"comm_id": control, "target_name": "jupyter.widget.control", "data": {}}
    front_end.send("comm_open", opened, metadata={"version": "1.0.0"})
    front_end.send("comm_msg", {"comm_id": control, "data": {"method": "request_states"}})
    front_end.until(lambda: front_end.from_comm(control), "the states of the widgets")
    [told] = front_end.from_comm(control)
    assert told["content"]["data"]["states"][model]["state"]["value"] == 42
    assert cell.running, "told only after the cell"
    assert cell.stop() == "training\nstopped\n"
