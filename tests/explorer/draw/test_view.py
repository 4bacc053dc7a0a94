"""Views of users: what they may return, when they are drawn, and how they fail."""

from __future__ import annotations

import gc
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.image import imread

import notebook_probe as nbp
from notebook_probe.explorer.draw.drawing import Drawing, Moment
from notebook_probe.explorer.draw.drawings import Drawings
from notebook_probe.explorer.draw.pace import SECOND_AFTER_S, SHARE, SHORTEST_S, Pace
from notebook_probe.explorer.draw.packed import packed
from notebook_probe.explorer.draw.rendered import png
from notebook_probe.explorer.draw.returned import frame_of
from notebook_probe.explorer.draw.view import VIEWS, OwnView
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.messages.selection import PanelSelection
from tests.explorer.fakes import FakeSource, FakeStream

HOME = PanelSelection(home="grad_norm")


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Given:
    """A panel's side of drawings: a source, a place for each view, and what is shown there."""

    def __init__(self, run: Callable[[Callable[[], None]], None] | None = None) -> None:
        self.stream = FakeStream("every_1", ["a", "b"], ["grad_norm"])
        self.stream.append(range(3), grad_norm=1.0)
        self.source = FakeSource(self.stream, modules=("a", "b"))
        self.clock = Clock()
        self.drawings = Drawings(self.source, self.clock, run or (lambda task: task()))
        self.shown: list[str] = []
        self.frames: list[Mapping[str, Any]] = []
        self.rooms: dict[str, tuple[int, float] | None] = {}
        self.told: list[Mapping[str, Any]] = []
        self.state, self.selection, self.n_hellos = "training", HOME, 1

    def refresh(self) -> list[str]:
        """The names of the views that were drawn."""
        moment = Moment(self.source.revision, self.selection, self.state, self.n_hellos)
        before = len(self.shown)
        self.told = [*self.drawings.news(moment)]
        self.drawings.draw(moment, lambda name: self.rooms.get(name, (600, 1.0)), self._show)
        return self.shown[before:]

    def trains(self) -> None:
        self.stream.append([self.stream.n_rows], grad_norm=1.0)

    def row(self, name: str) -> Mapping[str, Any]:
        self.refresh()
        self.n_hellos += 1  # so that everything is told
        self.refresh()
        [views] = [message for message in self.told if message["type"] == "views"]
        return next(row for row in views["rows"] if row["name"] == name)

    def _show(self, name: str, frame: tuple[Mapping[str, Any], list[memoryview]]) -> None:
        self.shown.append(name)
        self.frames.append(frame[0])


@pytest.fixture
def given() -> Given:
    return Given()


def nothing(source: object, selection: object) -> None:
    """Nothing to draw yet."""


# ------------------------------------------------------------------------------- registering


def test_the_view_of_the_docstring_is_drawn(given: Given) -> None:
    @nbp.view("depth")
    def depth(source: Any, selection: Any) -> Figure:
        """Gradient norm over depth, now."""
        figure = Figure(figsize=(6, 2.4), layout="constrained")
        axes = figure.subplots()
        axes.semilogy(source.data[selection.home].isel(step=-1), "o-")
        return figure

    assert given.refresh() == ["depth"]
    [frame] = given.frames
    assert (frame["form"], frame["width"], frame["height"]) == ("image", 600, 240)
    assert given.row("depth")["summary"] == "Gradient norm over depth, now."
    assert isinstance(depth(given.source, HOME), Figure), "called, it draws"
    assert isinstance(depth(given.source), Figure), "what a fresh panel shows"


def test_a_cell_that_is_run_again_replaces_its_view_at_once(given: Given) -> None:
    calls = []
    for version in (1, 2):

        @nbp.view("again", esm=f"// {version}")
        def again(source: Any, selection: Any, version: int = version) -> dict[str, int]:
            calls.append(version)
            return {"version": version}

        assert given.refresh() == ["again"], "whatever its pace"
        esm = [message for message in given.told if message["type"] == "esm"]
        assert [message["text"] for message in esm] == [f"// {version}"]
    assert calls == [1, 2]
    assert len(VIEWS) == 3, "lines, heat and this one"


def test_what_was_under_way_when_it_was_replaced_is_not_shown() -> None:
    tasks: list[Callable[[], None]] = []
    given = Given(run=tasks.append)
    for _ in range(2):

        @nbp.view("again")
        def again(source: Any, selection: Any) -> None: ...

        given.refresh()
    old, new = tasks
    old()
    assert given.shown == []
    new()
    assert given.shown == ["again"]


def test_another_view_of_the_same_name_is_refused() -> None:
    nbp.view("mine")(nothing)
    with pytest.raises(nbp.DuplicateNameError, match="view 'mine' is already registered"):

        @nbp.view("mine")
        def another(source: Any, selection: Any) -> None: ...

    with pytest.raises(nbp.DuplicateNameError, match="view 'lines'"):

        @nbp.view("lines")
        class Lines:
            def __call__(self, source: Any, selection: Any) -> None: ...


def test_a_module_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "bars.js"
    file.write_text("export default { draw() {} }", encoding="utf-8")
    assert nbp.view("bars", esm=file)(nothing).esm == "export default { draw() {} }"
    with pytest.raises(nbp.ViewError, match=r"bars\.ts.*No such file"):
        nbp.view("bars", esm=tmp_path / "bars.ts")


def test_a_definition_that_cannot_work_says_what_is_wrong() -> None:
    with pytest.raises(nbp.ViewError, match="a view needs a name"):
        nbp.view(nothing)  # type: ignore[arg-type]  # the parentheses were forgotten
    with pytest.raises(nbp.ViewError, match=r"view 'x' is 3; a function of \(source, selection\)"):
        nbp.view("x")(3)  # type: ignore[arg-type]


def test_what_a_package_announces_is_a_view_or_warned_of(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(VIEWS._members)
    theirs = nbp.view("theirs")(nothing)
    VIEWS._members = before
    loaded = {"theirs": theirs, "plain": nothing}
    points = [SimpleNamespace(name=n, value=n, load=lambda n=n: loaded[n]) for n in loaded]
    monkeypatch.setattr("notebook_probe.registry.entry_points", lambda group: points)
    with pytest.warns(nbp.RegistryWarning, match=r"@nbp.view\('plain'\) makes one of it"):
        VIEWS.load()
    monkeypatch.delitem(VIEWS._instead, "plain")
    assert given.refresh() == ["theirs"]


def test_a_class_is_made_once_for_each_panel() -> None:
    @nbp.view("counting", esm="// draws it")
    class Counting:
        def __init__(self) -> None:
            self.n = 0

        def __call__(self, source: Any, selection: Any) -> dict[str, int]:
            self.n += 1
            return {"n": self.n}

    assert isinstance(Counting, OwnView)
    panels = [Given(), Given()]
    for given in (*panels, panels[0]):
        given.n_hellos += 1
        given.refresh()
    assert [frame["data"]["n"] for frame in panels[0].frames] == [1, 2]
    assert [frame["data"]["n"] for frame in panels[1].frames] == [1]


# -------------------------------------------------------------------------------------- pace


def test_the_dearer_the_rarer() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.rested()
    assert pace.cost_s is None
    for cost_s in (0.084, 0.084):
        pace.drew(cost_s)
    assert pace.rest_s() == pytest.approx(0.084 / SHARE)
    clock.now_s += 0.99 * 0.084 / SHARE
    assert not pace.rested()
    clock.now_s += 0.02 * 0.084 / SHARE
    assert pace.rested()
    assert not pace.rested(n_views=2), "all of them together take so much"


def test_a_cheap_view_is_drawn_twice_a_second_at_most() -> None:
    pace = Pace(Clock())
    pace.drew(0.0001)
    assert pace.rest_s() == SHORTEST_S


def test_one_slow_drawing_does_not_stop_a_view_for_long() -> None:
    pace = Pace(Clock())
    pace.drew(3.0)
    assert pace.rest_s() == SECOND_AFTER_S, "the first one imports"
    pace.drew(0.03)
    assert pace.rest_s() == pytest.approx(1.0)
    pace.drew(9.0)
    pace.drew(0.03)
    assert pace.rest_s() == pytest.approx(1.0)


def counted(given: Given, monkeypatch: pytest.MonkeyPatch, cost_s: float = 0.3) -> None:
    """A view whose every drawing takes ``cost_s`` of a core."""
    spent = iter(np.arange(0, 1000, cost_s))
    monkeypatch.setattr("time.thread_time", lambda: float(next(spent)))
    nbp.view("dear")(nothing)
    given.refresh()
    given.clock.now_s += SECOND_AFTER_S
    given.trains()
    assert given.refresh() == ["dear"]
    given.trains()


def test_while_training_runs_it_waits_for_its_pace(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(given, monkeypatch)
    given.clock.now_s += 9.9
    assert given.refresh() == []
    given.clock.now_s += 0.2
    assert given.refresh() == ["dear"]
    given.clock.now_s += 1000
    assert given.refresh() == [], "there is nothing new"


def test_its_cost_and_its_pace_are_told(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(given, monkeypatch)
    row = given.row("dear")
    assert row["cost_s"] == pytest.approx(0.3)
    assert row["every_s"] == pytest.approx(10.0)
    given.state = "paused"
    assert given.row("dear")["every_s"] is None


def test_what_is_chosen_is_drawn_at_once(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(given, monkeypatch)
    for choice in (PanelSelection(home="mean"), PanelSelection(window=(0.0, 2.0))):
        given.selection = choice
        assert given.refresh() == ["dear"]
        assert given.refresh() == []
    given.rooms["dear"] = (300, 2.0)
    assert given.refresh() == ["dear"], "the panel was resized"
    given.n_hellos += 1
    assert given.refresh() == ["dear"], "a view has come that has nothing yet"


@pytest.mark.parametrize("state", ["paused", "finished", "failed"])
def test_when_training_rests_it_is_drawn_at_once(
    given: Given, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    counted(given, monkeypatch)
    assert given.refresh() == []
    given.state = state
    assert given.refresh() == ["dear"]
    assert given.refresh() == []


def test_it_is_not_drawn_while_nobody_sees_it(given: Given) -> None:
    nbp.view("seen")(nothing)
    given.rooms["seen"] = None
    assert given.refresh() == []
    given.rooms["seen"] = (600, 1.0)
    given.drawings.fold("seen", True)
    assert given.refresh() == []
    assert given.row("seen")["folded"]
    given.drawings.fold("seen", False)
    assert given.refresh() == ["seen"]


def test_a_folded_view_stays_folded_when_its_cell_is_run_again(given: Given) -> None:
    for _ in range(2):

        @nbp.view("again")
        def again(source: Any, selection: Any) -> None: ...

        given.refresh()
        given.drawings.fold("again", True)
    assert given.row("again")["folded"]
    assert given.shown == ["again"], "the first, before it was folded"


def test_a_view_that_is_being_drawn_is_left_alone_and_holds_up_no_other() -> None:
    tasks: list[Callable[[], None]] = []
    given = Given(run=tasks.append)
    for name in ("slow", "quick"):
        nbp.view(name)(lambda source, selection: None)
    given.refresh()
    slow, quick = tasks
    quick()
    given.clock.now_s += 10
    given.trains()
    given.refresh()
    assert len(tasks) == 3, "quick alone is drawn again"
    slow()
    tasks[2]()
    assert given.shown == ["quick", "slow", "quick"]


def test_rows_and_modules_are_told_when_they_are_new_and_when_somebody_comes(given: Given) -> None:
    assert given.refresh() == []
    assert given.told == []
    nbp.view("x", esm="// x")(nothing)
    given.refresh()
    assert [message["type"] for message in given.told] == ["views", "esm"]
    given.refresh()
    assert [message["type"] for message in given.told] == ["views"], "its cost is known now"
    given.refresh()
    assert given.told == []
    given.n_hellos += 1
    given.refresh()
    assert [message["type"] for message in given.told] == ["views", "esm"]


# ------------------------------------------------------------------------------------ errors


def test_an_exception_is_told_with_its_line_and_counted_until_it_is_over(given: Given) -> None:
    failing = [True]

    def helper() -> None:
        raise KeyError("grad_nrom")

    @nbp.view("wrong")
    def wrong(source: Any, selection: Any) -> None:
        if failing:
            helper()

    line = wrong.make().__code__.co_firstlineno + 3
    for _ in range(3):
        given.n_hellos += 1
        assert given.refresh() == []
    row = given.row("wrong")
    assert row["error"] == "KeyError: 'grad_nrom'"
    assert row["where"] == f"line {line} of test_view.py: helper()"
    assert row["n_errors"] == 3
    failing.clear()
    given.n_hellos += 1
    assert given.refresh() == ["wrong"]
    assert (given.row("wrong")["error"], given.row("wrong")["n_errors"]) == ("", 0)


def test_a_view_that_raises_leaves_the_others_alone(given: Given) -> None:
    @nbp.view("leaves")
    def leaves(source: Any, selection: Any) -> None:
        sys.exit("no more")

    nbp.view("stays")(nothing)
    assert given.refresh() == ["stays"]
    assert given.row("leaves")["error"] == "SystemExit: no more"


def test_a_class_that_cannot_be_made_is_an_error_in_its_place(given: Given) -> None:
    @nbp.view("made")
    class Made:
        def __init__(self) -> None:
            raise OSError("no such file")

        def __call__(self, source: Any, selection: Any) -> None: ...

    assert given.refresh() == []
    assert given.row("made")["error"] == "OSError: no such file"
    assert given.row("made")["where"].endswith('raise OSError("no such file")')


def test_a_view_that_returns_something_else_says_what_is_allowed(given: Given) -> None:
    nbp.view("lists")(lambda source, selection: [1, 2])
    nbp.view("dicts")(lambda source, selection: {"n": 1})
    assert given.row("lists")["error"] == (
        "'lists' returned list [1, 2]; a view returns a matplotlib Figure, "
        "a dict (if it has an ES module: nbp.view(name, esm=...)) or None"
    )
    assert given.row("lists")["where"] == ""
    assert given.row("dicts")["error"].startswith("'dicts' returned dict {'n': 1}; a view returns")


# ----------------------------------------------------------------------------------- figures


def tall() -> Figure:
    figure = Figure(figsize=(2, 4), dpi=31)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow([[0, 1]], aspect="auto")
    axes.axis("off")
    return figure


@pytest.mark.parametrize(("width", "ratio"), [(300, 1.0), (501, 2.0), (300, 1.5)])
def test_a_figure_is_as_wide_as_its_place_in_its_own_ratio(width: int, ratio: float) -> None:
    content, height = png(tall(), width, ratio)
    assert height == 2 * width
    pixels = imread(BytesIO(content), format="png")
    assert pixels.shape[:2] == (round(height * ratio), round(width * ratio))
    assert (pixels[:, 0] != pixels[:, -1]).any(), "something is drawn from edge to edge"


def test_a_figure_is_given_back_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pyplot.rcParams, "savefig.bbox", "tight")
    figure = tall()
    contents = {png(figure, 300)[0] for _ in range(2)}
    assert len(contents) == 1
    [content] = contents
    assert struct.unpack(">II", content[16:24]) == (300, 600)  # of the IHDR chunk
    assert (*figure.get_size_inches(), figure.get_dpi()) == (2, 4, 31)


def test_texts_are_as_large_in_a_wide_place_as_in_a_narrow_one() -> None:
    def ink(width: int) -> int:
        figure = Figure(figsize=(4, 1))
        figure.text(0.1, 0.4, "gradient norm")
        return int((imread(BytesIO(png(figure, width)[0]), format="png")[..., 0] < 0.5).sum())

    assert ink(400) == pytest.approx(ink(900), rel=0.1)


def test_a_figure_of_pyplot_works_and_is_not_kept_open() -> None:
    before = pyplot.get_fignums()
    figure, _ = pyplot.subplots()
    assert frame_of(figure, "x", "", 300, 1.0)[0]["form"] == "image"
    assert pyplot.get_fignums() == before


def test_drawing_does_not_load_pyplot() -> None:
    code = (
        "import sys; from matplotlib.figure import Figure\n"
        "from notebook_probe.explorer.draw.rendered import png\n"
        "png(Figure(), 300); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# -------------------------------------------------------------------------------- ES modules


def unpacked(values: Mapping[str, Any]) -> Any:
    """What the browser makes of it, in numpy."""
    data, places, buffers = packed(values)
    for place, buffer in zip(places, buffers, strict=True):
        inside = data
        for key in place["path"][:-1]:
            inside = inside[key]
        array = np.frombuffer(buffer, place["dtype"]).reshape(place["shape"])
        inside[place["path"][-1]] = array
    return data


@pytest.mark.parametrize(
    ("dtype", "sent_as"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        (">f4", "float32"),
        ("float16", "float32"),
        ("int8", "int8"),
        ("uint16", "uint16"),
        ("int32", "int32"),
        ("int64", "float64"),
        ("bool", "uint8"),
    ],
)
def test_arrays_arrive_as_types_that_javascript_has(dtype: str, sent_as: str) -> None:
    values = np.arange(12).reshape(3, 4).T.astype(dtype)
    sent = unpacked({"deep": [{"values": values}], "n": 3})
    found = sent["deep"][0]["values"]
    assert (found.dtype.name, sent["n"]) == (sent_as, 3)
    np.testing.assert_array_equal(found, values)


def test_single_numbers_of_numpy_are_numbers_and_json_has_no_nan() -> None:
    values = {"a": np.float32(0.5), "b": np.array(3), "c": (np.bool_(True), None, float("nan"))}
    assert unpacked(values) == {"a": 0.5, "b": 3, "c": [True, None, None]}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"a": {"b": [object]}},
            r"data\['a'\]\['b'\]\[0\] is type <class 'object'>; numbers, texts",
        ),
        ({"a": np.array(["x"])}, r"data\['a'\] is an array of <U1; numbers"),
        ({"a": {1: 2}}, r"data\['a'\] has the key 1; the keys of a dict are texts"),
        ({"a": np.zeros(2, complex)}, "an array of complex128"),
    ],
)
def test_what_cannot_be_sent_is_named_with_its_place(values: Any, said: str) -> None:
    with pytest.raises(nbp.ViewError, match=said):
        packed(values)


# ----------------------------------------------------------------------------------- threads


def test_a_view_is_drawn_in_a_thread_of_its_own_that_ends_with_it() -> None:
    names, shown = [], threading.Event()

    @nbp.view("where")
    def where(source: Any, selection: Any) -> None:
        names.append(threading.current_thread())

    drawing = Drawing(where, Given().source)
    moment = Moment(1, HOME, "training", 1)
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
