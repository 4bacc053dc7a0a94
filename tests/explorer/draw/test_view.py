"""Views of users: how they are registered, and how they fail."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure

import notebook_probe as nbp
from notebook_probe.explorer.draw.view import VIEWS, OwnView
from tests.explorer.draw.panel_side import HOME, PanelSide, nothing


@pytest.mark.slow
def test_the_view_of_the_docstring_is_drawn(side: PanelSide) -> None:
    @nbp.view("depth")
    def depth(source: Any, selection: Any) -> Figure:
        """Gradient norm over depth, now."""
        figure = Figure(figsize=(6, 2.4), layout="constrained")
        axes = figure.subplots()
        axes.semilogy(source.data[selection.home].isel(step=-1), "o-")
        return figure

    assert side.refresh() == ["depth"]
    [frame] = side.frames
    assert (frame["form"], frame["width"], frame["height"]) == ("image", 600, 240)
    assert side.row("depth")["summary"] == "Gradient norm over depth, now."
    assert isinstance(depth(side.source, HOME), Figure), "called, it draws"
    assert isinstance(depth(side.source), Figure), "what a fresh panel shows"


def test_a_cell_that_is_run_again_replaces_its_view_at_once(side: PanelSide) -> None:
    calls = []
    for version in (1, 2):

        @nbp.view("again", esm=f"// {version}")
        def again(source: Any, selection: Any, version: int = version) -> dict[str, int]:
            calls.append(version)
            return {"version": version}

        assert side.refresh() == ["again"], "whatever its pace"
        esm = [message for message in side.told if message["type"] == "esm"]
        assert [message["text"] for message in esm] == [f"// {version}"]
    assert calls == [1, 2]
    assert len(VIEWS) == 4, "lines, heat, vectors and this one"


def test_what_was_under_way_when_it_was_replaced_is_not_shown() -> None:
    tasks: list[Callable[[], None]] = []
    side = PanelSide(run=tasks.append)
    for _ in range(2):

        @nbp.view("again")
        def again(source: Any, selection: Any) -> None: ...

        side.refresh()
    old, new = tasks
    old()
    assert side.shown == []
    new()
    assert side.shown == ["again"]


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
    side: PanelSide, monkeypatch: pytest.MonkeyPatch
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
    assert side.refresh() == ["theirs"]


def test_a_class_is_made_once_for_each_panel() -> None:
    @nbp.view("counting", esm="// draws it")
    class Counting:
        def __init__(self) -> None:
            self.n = 0

        def __call__(self, source: Any, selection: Any) -> dict[str, int]:
            self.n += 1
            return {"n": self.n}

    assert isinstance(Counting, OwnView)
    panels = [PanelSide(), PanelSide()]
    for side in (*panels, panels[0]):
        side.n_hellos += 1
        side.refresh()
    assert [frame["data"]["n"] for frame in panels[0].frames] == [1, 2]
    assert [frame["data"]["n"] for frame in panels[1].frames] == [1]


def test_an_exception_is_told_with_its_line_and_counted_until_it_is_over(side: PanelSide) -> None:
    failing = [True]

    def helper() -> None:
        raise KeyError("grad_nrom")

    @nbp.view("wrong")
    def wrong(source: Any, selection: Any) -> None:
        if failing:
            helper()

    line = wrong.make().__code__.co_firstlineno + 3
    for _ in range(3):
        side.n_hellos += 1
        assert side.refresh() == []
    row = side.row("wrong")
    assert row["error"] == "KeyError: 'grad_nrom'"
    assert row["where"] == f"line {line} of test_view.py: helper()"
    assert row["n_errors"] == 3
    failing.clear()
    side.n_hellos += 1
    assert side.refresh() == ["wrong"]
    assert (side.row("wrong")["error"], side.row("wrong")["n_errors"]) == ("", 0)


def test_a_view_that_raises_leaves_the_others_alone(side: PanelSide) -> None:
    @nbp.view("leaves")
    def leaves(source: Any, selection: Any) -> None:
        sys.exit("no more")

    nbp.view("stays")(nothing)
    assert side.refresh() == ["stays"]
    assert side.row("leaves")["error"] == "SystemExit: no more"


def test_a_class_that_cannot_be_made_is_an_error_in_its_place(side: PanelSide) -> None:
    @nbp.view("made")
    class Made:
        def __init__(self) -> None:
            raise OSError("no such file")

        def __call__(self, source: Any, selection: Any) -> None: ...

    assert side.refresh() == []
    assert side.row("made")["error"] == "OSError: no such file"
    assert side.row("made")["where"].endswith('raise OSError("no such file")')


def test_a_view_that_returns_something_else_says_what_is_allowed(side: PanelSide) -> None:
    nbp.view("lists")(lambda source, selection: [1, 2])
    nbp.view("dicts")(lambda source, selection: {"n": 1})
    assert side.row("lists")["error"] == (
        "'lists' returned list [1, 2]; a view returns a matplotlib Figure, "
        "a dict (if it has an ES module: nbp.view(name, esm=...)) or None"
    )
    assert side.row("lists")["where"] == ""
    assert side.row("dicts")["error"].startswith("'dicts' returned dict {'n': 1}; a view returns")
