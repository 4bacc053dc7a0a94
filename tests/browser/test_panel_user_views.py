"""Views that users register: really drawn, folded, and wrong in their own place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from playwright.sync_api import Locator, expect

from notebook_probe.explorer.draw.returned import frame_of
from tests.browser.explorer_page import MODEL, PICTURES, Panel, plain, watch
from tests.browser.lab import OpenNotebook
from tests.browser.panel_messages import (
    STEPS,
    WEIGHTED,
    gradient_norms,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
    view_row,
)
from tests.browser.panel_page import PanelPage
from tests.browser.test_panel_look import FAINT

COUNTING = """export default { draw(element, data) {
  element.textContent = `${data.n}: ${data.inside.values.constructor.name}
    ${data.inside.values.join(" ")} (${data.inside.values.shape})`;
} }"""
FRAGILE = """export default {
  draw(element, data) {
    element.textContent = data.names.join(" ");
  },
}"""


@pytest.fixture
def shown(bare: PanelPage) -> PanelPage:
    return introduced(bare.show())


def introduced(panel: PanelPage) -> PanelPage:
    panel.say(model_message())
    panel.say(status_message())
    panel.say(selection_message())
    return panel


def says_views(panel: PanelPage, *rows: Mapping[str, Any]) -> None:
    panel.say({"v": 1, "type": "views", "rows": rows})


def brings(panel: PanelPage, name: str, esm: str) -> None:
    panel.say({"v": 1, "type": "esm", "view": name, "text": esm})


def draws(panel: PanelPage, name: str, returned: object, seq: int = 1, width: int = 600) -> None:
    """What a view returned, sent as the kernel does; waits until it was painted."""
    message, buffers = frame_of(returned, name, "a module", width, 1.0)
    panel.say({**message, "seq": seq}, [bytes(buffer) for buffer in buffers])
    panel.page.wait_for_function(
        "([kind, seq]) => sent.some((m) => m.painted?.[kind] === seq)", arg=[name, seq]
    )


def view(panel: PanelPage | Panel, name: str) -> Locator:
    return panel.root.locator(f'.nbp-own[data-view="{name}"]')


def over_depth() -> Figure:
    figure = Figure(figsize=(6, 2.4), layout="constrained")
    axes = figure.subplots()
    last = [values[-1] for values in gradient_norms().values()]
    axes.semilogy(WEIGHTED, last, "o-")
    axes.tick_params(axis="x", rotation=20)
    axes.set_ylabel("gradient norm")
    return figure


BARS = """export default { draw(element, data) {
  element.replaceChildren(...[...data.values].map((value, i) => {
    const bar = document.createElement("div");
    bar.style = `width: ${100 * value}%; margin: 2px 0; background: #0072b2; color: #fff`;
    bar.textContent = data.names[i];
    return bar; }));
} }"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1060, 700])
def test_pictures_for_people(bare: PanelPage, theme: str, width: int) -> None:
    panel = introduced(bare.show(width, theme, lab=True))
    series = gradient_norms()
    grid = np.array([series[path] for path in WEIGHTED])
    conv3 = ("block.conv3", "grad_norm")
    panel.say(selection_message(series=[conv3]))
    panel.draw(*heat_message(grid, WEIGHTED))
    panel.draw(*lines_message({conv3: (np.arange(STEPS), series["block.conv3"])}))
    says_views(
        panel,
        view_row("depth", cost_s=0.084, every_s=2.8, summary="Gradient norm over depth, now."),
        view_row("bars", cost_s=0.0004, every_s=0.5),
        view_row("shares", folded=True),
        view_row(
            "norms",
            cost_s=0.002,
            every_s=0.5,
            error="KeyError: 'grad_nrom'",
            where="line 4: axes.plot(source.data['grad_nrom'])",
            n_errors=3,
        ),
    )
    brings(panel, "bars", BARS)
    room = 1060 // 2 - 20 if width > 860 else width - 24
    draws(panel, "depth", over_depth(), width=room)
    draws(panel, "bars", {"values": np.linspace(1, 0.3, 6), "names": WEIGHTED[:6]})
    assert panel.page.evaluate(FAINT) == []
    lefts = {view(panel, name).bounding_box()["x"] for name in ("depth", "bars")}  # type: ignore[index]
    assert len(lefts) == (2 if width > 860 else 1), "side by side, where there is room"
    for place in panel.root.locator(".nbp-own-place").all():
        assert place.evaluate("(one) => one.scrollWidth <= one.clientWidth")
    panel.picture(f"views-{width}-{theme}")


def test_a_figure_is_drawn_as_a_picture_in_its_own_ratio(shown: PanelPage) -> None:
    says_views(shown, view_row("depth", summary="Gradient norm over depth."))
    draws(shown, "depth", over_depth(), width=600)
    image = view(shown, "depth").locator("img")
    expect(image).to_have_attribute("alt", "Gradient norm over depth.")
    sizes = "(one) => [one.naturalWidth, one.naturalHeight, one.clientWidth, one.clientHeight]"
    assert image.evaluate(sizes) == [600, 240, 600, 240]


def test_a_view_says_how_wide_its_place_is_and_how_sharp_the_screen(shown: PanelPage) -> None:
    shown.wait_sent("viewport")
    says_views(shown, view_row("depth"))
    shown.page.wait_for_function("sent.some((m) => m.widths?.depth)")
    viewport = shown.sent("viewport")[-1]
    assert 1000 < viewport["widths"]["depth"] < 1060
    assert viewport["pixel_ratio"] == 1
    says_views(shown, view_row("depth"), view_row("bars"))
    shown.page.wait_for_function("sent.some((m) => m.widths?.bars < 530)")
    widths = shown.sent("viewport")[-1]["widths"]
    assert widths["depth"] == widths["bars"]


def test_a_module_is_given_an_element_and_typed_arrays_in_their_places(shown: PanelPage) -> None:
    says_views(shown, view_row("count"))
    brings(shown, "count", COUNTING)
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    draws(shown, "count", {"n": 3, "inside": {"values": values}})
    expect(view(shown, "count").locator(".nbp-own-drawing")).to_have_text(
        "3: Int16Array 0 1 2 3 4 5 (2,3)"
    )


def test_an_error_of_a_module_stands_in_its_place_and_the_others_go_on(shown: PanelPage) -> None:
    says_views(shown, view_row("fragile"), view_row("depth"))
    brings(shown, "fragile", FRAGILE)
    draws(shown, "fragile", {"names": None})
    problem = view(shown, "fragile").get_by_role("alert")
    expect(problem).to_contain_text("TypeError")
    expect(problem).to_contain_text("line 3 of its module")
    draws(shown, "depth", over_depth(), seq=2)
    expect(view(shown, "depth").locator("img")).to_be_visible()
    draws(shown, "fragile", {"names": ["a", "b"]}, seq=3)
    expect(problem).to_be_hidden()
    expect(view(shown, "fragile")).to_contain_text("a b")
    assert shown.errors == []


@pytest.mark.parametrize(
    ("esm", "said"),
    [
        ("export const draw = 1;", "has no `export default { draw(element"),
        ("let 3;", "SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_used_says_why(shown: PanelPage, esm: str, said: str) -> None:
    says_views(shown, view_row("count"))
    brings(shown, "count", esm)
    draws(shown, "count", {"n": 3})
    expect(view(shown, "count").get_by_role("alert")).to_contain_text(said)
    assert shown.errors == []


def test_a_view_that_is_registered_again_begins_with_an_element_of_its_own(
    shown: PanelPage,
) -> None:
    says_views(shown, view_row("count"))
    counter = "export default { draw(element, data) { element.append(data.n, ' '); } }"
    brings(shown, "count", counter)
    draws(shown, "count", {"n": 1}, seq=1)
    draws(shown, "count", {"n": 2}, seq=2)
    place = view(shown, "count").locator(".nbp-own-place")
    expect(place).to_have_text("1 2")
    brings(shown, "count", counter.replace("' '", "'!'"))
    expect(place).to_have_text("Nothing to draw yet.")
    draws(shown, "count", {"n": 3}, seq=3)
    expect(place).to_have_text("3!")


def test_an_error_of_the_function_stands_in_place_of_its_picture(shown: PanelPage) -> None:
    says_views(shown, view_row("depth"))
    draws(shown, "depth", over_depth())
    line = "line 4: axes.plot(source.data['grad_nrom'])"
    failed = view_row("depth", error="KeyError: 'grad_nrom'", where=line, n_errors=3)
    says_views(shown, failed)
    expect(view(shown, "depth").get_by_role("alert")).to_have_text(
        f"▲ KeyError: 'grad_nrom' (3 times)\n{line}"
    )
    expect(view(shown, "depth").locator("img")).to_be_hidden()
    says_views(shown, view_row("depth"))
    expect(view(shown, "depth").get_by_role("alert")).to_be_hidden()
    expect(view(shown, "depth").locator("img")).to_be_visible()


def test_a_folded_view_is_a_name_and_stays_one(shown: PanelPage) -> None:
    says_views(shown, view_row("depth"))
    draws(shown, "depth", over_depth())
    shown.page.wait_for_function("sent.some((m) => m.widths?.depth)")
    fold = view(shown, "depth").locator("[data-action=fold]")
    fold.click()
    assert shown.wait_sent("fold")["folded"] is True
    expect(view(shown, "depth").locator("img")).to_be_hidden()
    shown.page.wait_for_function("sent.at(-1).widths && !('depth' in sent.at(-1).widths)")
    says_views(shown, view_row("depth", cost_s=0.1))  # was under way when it was folded
    expect(fold).to_have_attribute("aria-expanded", "false")
    says_views(shown, view_row("depth", folded=True))
    expect(fold).to_have_attribute("aria-expanded", "false")
    says_views(shown, view_row("depth"))  # somebody unfolded it in another view of the panel
    expect(fold).to_have_attribute("aria-expanded", "true")
    expect(view(shown, "depth").locator("img")).to_be_visible()


def test_what_it_costs_stands_beside_its_name(shown: PanelPage) -> None:
    head = shown.root.locator(".nbp-own-head")
    says_views(shown, view_row("depth", cost_s=0.084, every_s=2.8))
    expect(head).to_have_text(re.compile(r"^▾\s*depth · 84\sms, every 3\ss$"))
    says_views(shown, view_row("depth", cost_s=0.084))
    expect(head).to_have_text(re.compile(r"depth · 84\sms$"))


def test_a_name_is_text_whatever_is_in_it(shown: PanelPage) -> None:
    name = "<img src=x onerror=\"document.title = 'run'\">"
    says_views(shown, view_row(name, error=name, n_errors=1))
    draws(shown, name, over_depth())
    expect(shown.root.locator(".nbp-own-name")).to_contain_text(name)
    assert shown.page.title() == ""
    assert shown.root.locator("img").count() == 1, "the picture"


# ------------------------------------------------------------------------------ in a real notebook

LOOP = "job = run.train_in_background(train)"
DEPTH = """
from matplotlib.figure import Figure

@nbp.view("depth")
def depth(source, selection):
    "Gradient norm over depth, now."
    figure = Figure(figsize=(6, 2.4), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(source.data[selection.home].isel(step=-1), "o-")
    return figure
"""
BARE = """
@nbp.view("steps", esm="export default { draw(element, data) {"
          " element.textContent = `${data.steps.constructor.name} ${data.steps.length}`; } }")
def steps(source, selection):
    return {"steps": source.data.step.values.astype("float32")}
"""
BROKEN = """
@nbp.view("broken")
def broken(source, selection):
    if len(source.data.step):
        source.data.no_such_quantity
"""
MENDED = """
@nbp.view("broken")
def broken(source, selection):
    return Figure(figsize=(6, 1))
"""
CELLS = [MODEL, watch("own_views"), LOOP, DEPTH, BARE, BROKEN, MENDED]


@pytest.mark.stories
def test_registered_views_are_drawn_live_in_a_real_notebook(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(CELLS)
    notebook.run(0, 1, 2, 3)
    panel = Panel(notebook, 1)
    panel.show()
    image = view(panel, "depth").locator("img")
    expect(image).to_be_visible()
    first = image.get_attribute("src")
    assert image.evaluate("(one) => one.naturalWidth") > 300
    panel.wait_until("(root, old) => root.querySelector('.nbp-own img').src !== old", first)

    notebook.run(4, 5)
    drawn = view(panel, "steps").locator(".nbp-own-drawing")
    expect(drawn).to_have_text(re.compile(r"Float32Array \d+"))
    expect(view(panel, "broken").get_by_role("alert")).to_contain_text(
        "no attribute 'no_such_quantity'"
    )
    expect(view(panel, "broken").get_by_role("alert")).to_contain_text(
        "line 4: source.data.no_such_quantity"
    )
    expect(image).to_be_visible()
    expect(view(panel, "depth").locator(".nbp-own-head")).to_have_text(
        re.compile(r"depth · .*s, every ")
    )
    notebook.run(6)
    expect(view(panel, "broken").locator("img")).to_be_visible()

    view(panel, "broken").locator("[data-action=fold]").click()
    panel.press("pause")
    panel.wait_state("paused")
    step = panel.step
    expect(drawn).to_have_text(f"Float32Array {step}")
    expect(view(panel, "depth").locator(".nbp-own-head")).not_to_contain_text("every")
    view(panel, "steps").scroll_into_view_if_needed()
    notebook.screenshot(PICTURES / "own_views.png")
    notebook.save()
    notebook.reload()
    panel = Panel(notebook, 1)
    expect(view(panel, "depth").locator("img")).to_be_visible()
    expect(view(panel, "broken").locator("[data-action=fold]")).to_have_attribute(
        "aria-expanded", "false"
    )
    assert plain(view(panel, "steps").inner_text()).endswith(f"Float32Array {step}")
    panel.press("stop")
