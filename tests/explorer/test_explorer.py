"""The panel as a widget: shown, spoken to, closed, forgotten; without a browser."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ipywidgets.widgets import widget as registry

import notebook_probe as nbp
from notebook_probe.explorer import Explorer, Panel, refresher
from notebook_probe.explorer import panel as panel_module
from notebook_probe.explorer.draw.lines import average_lines
from notebook_probe.explorer.handed_on import saved_panel
from notebook_probe.explorer.save import saved_picture
from tests.explorer.fakes import FakeControls, FakeSource, FakeStream


class Notebook:
    """Stands for IPython and for the way messages take; keeps what is displayed."""

    name = "own subshell"
    cell = ""
    is_pumped = False

    def __init__(self) -> None:
        self.execution = 1
        self.displayed: list[Any] = []
        self.updated: list[dict[str, Any]] = []
        self.panels: list[dict[str, Any]] = []
        self.carried: set[str] = set()
        self.cell_callbacks: list[CellEnded] = []
        self.answers: list[str] = []
        self.n_pumped = 0

    def display(self, shown: Any, **_: Any) -> None:
        self.displayed.append(shown)

    def update_display(self, bundle: dict[str, Any], **_: Any) -> None:
        self.updated.append(bundle)

    def update_panel(self, bundle: dict[str, Any], **_: Any) -> None:
        self.panels.append(bundle)

    def explorers(self) -> list[Explorer]:
        return [shown for shown in self.displayed if isinstance(shown, Explorer)]

    def carry(self, comm: Any) -> None:
        self.carried.add(comm.comm_id)

    def forget(self, comm: Any) -> None:
        self.carried.discard(comm.comm_id)

    def verify(self, comm: Any) -> str:
        assert comm.comm_id in self.carried
        return self.name

    def answered(self, token: str) -> None:
        self.answers.append(token)

    def pump(self) -> None:
        self.n_pumped += 1

    def on_cell_end(self, callback: CellEnded) -> Callable[[], None]:
        self.cell_callbacks.append(callback)
        return lambda: self.cell_callbacks.remove(callback)

    def ends_cell(self, error: BaseException | None = None) -> None:
        for callback in self.cell_callbacks:
            callback(error)
        self.execution += 1


CellEnded = Callable[[BaseException | None], None]


def wait_for_pictures(panel: Panel) -> None:
    """Wait until those that were ordered have been taken, in their own thread."""
    taken = threading.Event()
    panel._beside.do(taken.set)
    assert taken.wait(timeout=60)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    notebook = Notebook()
    monkeypatch.setattr(saved_picture, "get_ipython", lambda: notebook)
    monkeypatch.setattr(saved_picture, "display", notebook.display)
    monkeypatch.setattr(panel_module, "kernel_route", lambda: notebook)
    monkeypatch.setattr(saved_picture, "update_display", notebook.update_display)
    monkeypatch.setattr(saved_panel, "get_ipython", lambda: notebook)
    monkeypatch.setattr(saved_panel, "display", notebook.display)
    monkeypatch.setattr(saved_panel, "update_display", notebook.update_panel)
    return notebook


@pytest.fixture(autouse=True)
def _nothing_is_left_over() -> Iterator[None]:
    widgets = set(registry._instances)
    yield
    assert set(registry._instances) <= widgets
    assert "notebook_probe panel" not in [thread.name for thread in threading.enumerate()]


def source_with_rows() -> FakeSource:
    stream = FakeStream("every_1", ["a", "b"], ["grad_norm"])
    stream.append(range(20), grad_norm=1.0)
    return FakeSource(stream)


class Ear:
    """What a panel sends, kept; lets a test wait for a message."""

    def __init__(self, explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard: list[Any] = []
        self._news = threading.Condition()
        monkeypatch.setattr(explorer, "send", self._send)

    def _send(self, content: Any, buffers: Any = None) -> None:
        with self._news:
            self.heard.append(content)
            self._news.notify_all()

    def waits_for(self, wanted: Callable[[Any], bool]) -> Any:
        with self._news:
            assert self._news.wait_for(lambda: any(map(wanted, self.heard)), timeout=60)
            return next(message for message in self.heard if wanted(message))

    def hears(self, kind: str) -> Any:
        return self.waits_for(lambda message: message["type"] == kind)


def test_a_shown_panel_stands_above_the_place_of_its_picture(notebook: Notebook) -> None:
    with Panel(source_with_rows()) as panel:
        panel.show()
        explorer, place, saved = notebook.displayed
        assert isinstance(explorer, Explorer)
        assert [place, saved] == 2 * [{"text/plain": ""}]
        bundle = explorer.bundle()[0]
        assert bundle["text/plain"] == "notebook_probe panel"
        assert "image/png" not in bundle


def test_the_result_of_the_cell_is_not_shown_twice_in_that_cell(notebook: Notebook) -> None:
    with Panel(source_with_rows()) as panel:
        explorer = panel.show()
        explorer._ipython_display_()
        assert len(notebook.explorers()) == 1
        notebook.ends_cell()
        explorer._ipython_display_()
        assert len(notebook.explorers()) == 2
        assert len(set(notebook.explorers())) == 1, "a second view of the same widget"


@pytest.mark.slow
def test_a_cell_that_runs_again_closes_the_panel_that_stood_there_alone(
    notebook: Notebook,
) -> None:
    with (
        Panel(source_with_rows()) as lone,
        Panel(source_with_rows()) as double,
        Panel(source_with_rows()) as nowhere,
        Panel(source_with_rows()) as new,
    ):
        notebook.cell = "a"
        lone.show()
        double.show()
        notebook.ends_cell()
        notebook.cell = "b"
        double.show()
        notebook.ends_cell()
        notebook.cell = ""  # a front end that does not name its cells
        nowhere.show()
        notebook.ends_cell()
        notebook.cell = "a"
        new.show()
        assert [one.closed for one in (lone, double, nowhere, new)] == [True, False, False, False]
        new.show()
        notebook.ends_cell()
        new.show()
        assert not new.closed, "shown again, it stays"


def test_a_hello_is_answered_with_the_whole_panel(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Panel(source_with_rows(), FakeControls()) as panel:
        panel.show()
        [explorer] = notebook.explorers()
        ear = Ear(explorer, monkeypatch)
        explorer._handle_custom_msg({"v": 1, "type": "hello", "view": "x"}, [])
        for kind in ("model", "status", "selection", "heat"):
            ear.hears(kind)
        assert ear.hears("status")["route"] == notebook.name


def test_a_message_nobody_understands_becomes_a_problem_in_the_panel(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Panel(source_with_rows(), FakeControls()) as panel:
        panel.show()
        [explorer] = notebook.explorers()
        ear = Ear(explorer, monkeypatch)
        explorer._handle_custom_msg({"v": 1, "type": "helo"}, [])
        explorer._handle_custom_msg({"v": 1, "type": "hello", "view": "x"}, [])
        status = ear.hears("status")
        assert "close: 'hello'" in status["problems"][0]["text"]


def test_an_exception_in_the_run_becomes_a_problem_in_the_panel(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(FakeControls):
        def put(self, request: Any) -> Any:
            raise RuntimeError("no queue")

    with Panel(source_with_rows(), Broken()) as panel:
        panel.show()
        [explorer] = notebook.explorers()
        ear = Ear(explorer, monkeypatch)
        explorer._handle_custom_msg({"v": 1, "type": "hello", "view": "x"}, [])
        explorer._handle_custom_msg({"v": 1, "type": "control", "id": "1", "action": "pause"}, [])
        status = ear.waits_for(lambda m: m["type"] == "status" and bool(m["problems"]))
        assert status["problems"][0]["text"] == "a click: RuntimeError: no queue"


@pytest.mark.parametrize(("trains", "wakes"), [(True, 0), (False, 1)])
def test_a_long_average_is_gone_on_with_at_once_where_no_training_is_held_up(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, trains: bool, wakes: int
) -> None:
    monkeypatch.setattr(average_lines, "AT_ONCE", 64)
    source = source_with_rows()
    [stream] = source.given
    stream.append(range(20, 200), grad_norm=1.0)
    source.finished = not trains
    panel = Panel(source, FakeControls() if trains else None)
    explorer = panel.show()
    assert panel._refresher is not None
    panel._refresher.close()
    explorer.series = (("a", "grad_norm"),)
    panel.receive({"v": 1, "type": "hello", "view": "x"})
    woken: list[None] = []
    monkeypatch.setattr(panel, "_wake", lambda is_used: woken.append(None))
    panel.refresh()
    assert len(woken) == wakes
    panel.close()


def test_an_answer_of_the_run_is_painted_without_waiting_for_the_next_turn(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresher, "pause_s", lambda cost_s, cores, is_used: 3600.0)
    controls = FakeControls()
    with Panel(source_with_rows(), controls) as panel:
        panel.show()
        [explorer] = notebook.explorers()
        ear = Ear(explorer, monkeypatch)
        panel.receive({"v": 1, "type": "hello", "view": "x"})
        panel.receive({"v": 1, "type": "control", "id": "1", "action": "pause"})
        ear.waits_for(lambda m: m["type"] == "status" and bool(m["tickets"]))
        controls.apply(8)
        [tell] = controls.news_callbacks
        tell()
        ear.waits_for(
            lambda m: m["type"] == "status" and [t["state"] for t in m["tickets"]] == ["applied"]
        )
    assert controls.news_callbacks == []


def test_a_ping_comes_back_to_the_route(notebook: Notebook) -> None:
    with Panel(source_with_rows()) as panel:
        panel.show()
        [explorer] = notebook.explorers()
        explorer._handle_custom_msg({"v": 1, "type": "ping", "token": "t"}, [])
        assert notebook.answers == ["t"]


@pytest.mark.parametrize("is_pumped", [True, False])
def test_a_live_run_is_followed_and_pumped_where_messages_need_it(
    notebook: Notebook, is_pumped: bool
) -> None:
    controls, notebook.is_pumped = FakeControls(), is_pumped
    with Panel(source_with_rows(), controls) as panel:
        panel.show()
        for at_boundary in controls.boundary_callbacks:
            at_boundary()
        assert (notebook.n_pumped, controls.n_following) == (int(is_pumped), 1)
    assert controls.boundary_callbacks == []
    assert controls.n_following == 0


def test_a_live_run_is_settled_after_its_cells(notebook: Notebook) -> None:
    controls = FakeControls()
    with Panel(source_with_rows(), controls) as panel:
        panel.show()
        notebook.ends_cell()
        assert controls.errors == [None]
        notebook.ends_cell(error := ValueError("shapes"))
        assert controls.errors == [None, error]
    assert notebook.cell_callbacks == []
    assert notebook.carried == set()


@pytest.mark.slow
def test_showing_and_closing_two_hundred_panels_leaves_nothing(notebook: Notebook) -> None:
    source = FakeSource(FakeStream("every_1", ["a"], ["norm"]))
    widgets = len(registry._instances)
    for _ in range(200):
        panel = Panel(source, FakeControls())
        panel.show()
        assert len(registry._instances) == widgets + 2  # the explorer and its layout
        panel.close()
        panel.close()
    assert len(registry._instances) == widgets
    panels = [weakref.ref(explorer) for explorer in notebook.explorers()]
    assert len(panels) == 200
    del panel, notebook.displayed[:]
    gc.collect()
    assert not any(explorer() for explorer in panels)


def test_a_panel_that_was_closed_can_be_shown_again(notebook: Notebook) -> None:
    panel = Panel(source_with_rows())
    panel.show()
    panel.close()
    assert panel.closed
    panel.show()
    assert not panel.closed
    assert len(set(notebook.explorers())) == 2
    panel.close()


def test_the_panel_of_a_run_goes_with_the_run(notebook: Notebook) -> None:
    class Run(FakeSource):
        panel: Panel

    run = Run(FakeStream("every_1", ["a"], ["norm"]))
    run.panel = Panel(run, FakeControls())
    run.panel.show()
    [explorer] = notebook.explorers()
    refresher = run.panel._refresher
    gone = weakref.ref(run)
    del run
    assert refresher is not None
    while refresher._thread.is_alive():  # a refresh that is under way holds the run until it ends
        gc.collect()
        refresher._thread.join(0.05)
    assert gone() is None
    assert explorer.comm is None
    notebook.ends_cell()
    assert notebook.cell_callbacks == []


def test_the_panel_of_a_record_stays_although_nobody_holds_it(notebook: Notebook) -> None:
    Panel(source_with_rows()).show()
    gc.collect()
    [explorer] = notebook.explorers()
    assert explorer.comm is not None
    [panel] = panel_module._shown
    panel.close()


def test_without_a_notebook_one_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    panel = Panel(source_with_rows()).show()
    assert capsys.readouterr().out == (
        "fake: there is no notebook here to show a panel in; "
        '.to_html("run.html") writes it into a file\n'
    )
    assert panel.closed
    panel.close()


def test_a_registered_view_is_drawn_in_the_panel_and_ends_with_it(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    @nbp.view("mine", esm="// draws it")
    def mine(source: Any, selection: Any) -> dict[str, str]:
        threads.append(threading.current_thread())
        return {"home": selection.home}

    with Panel(source_with_rows()) as panel:
        panel.show()
        ear = Ear(notebook.explorers()[0], monkeypatch)
        panel.receive({"v": 1, "type": "hello", "view": "x"})
        assert ear.hears("views")["rows"][0]["name"] == "mine"
        viewport = {"v": 1, "type": "viewport", "view": "x", "pixel_ratio": 1.0}
        panel.receive({**viewport, "widths": {"mine": 500}})
        assert ear.hears("drawn")["data"] == {"home": "grad_norm"}
    assert threads[0] is not threading.main_thread()
    threads[0].join(60)
    assert not threads[0].is_alive()
