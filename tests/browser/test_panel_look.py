"""How the panel looks: both themes, three widths, contrast, focus; pictures for people to see."""

from __future__ import annotations

import time

import numpy as np
import pytest
from playwright.sync_api import expect

from notebook_probe.run.health.status import COMPILED
from tests.browser.panel_messages import (
    STEPS,
    WEIGHTED,
    gradient_norms,
    heat_message,
    lines_message,
    model_message,
    selection_message,
    status_message,
    ticket,
)
from tests.browser.panel_page import PanelPage

SERIES = [
    ("stem.conv1", "grad_norm"),
    ("block.conv3", "grad_norm"),
    ("block.relu3", "zero_fraction"),
]

# Text whose contrast with what lies behind it is below WCAG AA; greyed controls are exempt.
FAINT = """() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (layers) => {
    pen.clearRect(0, 0, 1, 1);
    for (const layer of layers) { pen.fillStyle = layer; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const grounds = (node) => {
    const layers = [];
    for (; node; node = node.parentElement) layers.unshift(getComputedStyle(node).backgroundColor);
    return ["#fff", ...layers];
  };
  const faint = [];
  for (const node of document.querySelectorAll(".nbp-panel *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const greyed = node.closest("[aria-disabled=true], option:disabled");
    if ((!own && node.tagName !== "INPUT") || greyed || !node.checkVisibility()) continue;
    const behind = grounds(node);
    const ratio = parts.contrast(over([...behind, getComputedStyle(node).color]), over(behind));
    if (ratio < 4.5) faint.push(`${node.className || node.tagName} ${node.textContent} ${ratio}`);
  }
  return faint;
}"""


def populate(panel: PanelPage) -> PanelPage:
    """A run in full swing: a fading layer, a gap, a NaN, a late probe, a problem, a ticket."""
    norms = gradient_norms()
    recorded = {**status_message()["recorded"], "zero_fraction": ["block.relu3"]}
    problem = {
        "module": "block.relu3",
        "quantity": "zero_fraction",
        "text": "63 % of units dead since step 410",
        "count": 1,
        "disabled": False,
    }
    attached = [*status_message()["attached"], ("block.relu3", "zero_fraction", "every(10)")]
    changes = {"recorded": recorded, "problems": [problem], "attached": attached}
    panel.say(model_message())
    panel.say(status_message(**changes))
    panel.say(selection_message(series=SERIES, smooth=0.9))
    cells = np.array([norms[path] for path in WEIGHTED])
    cells[3, 300:303] = np.nan
    unmeasured = np.zeros(cells.shape, dtype=bool)
    unmeasured[6, :18] = True
    panel.draw(*heat_message(cells, WEIGHTED, last_step=1239, unmeasured=unmeasured))
    steps = np.arange(STEPS) * 1240 / STEPS
    broken = norms["stem.conv1"].copy()
    broken[150:153] = np.nan
    late = 0.6 + 0.05 * np.random.default_rng(1).random(14)
    values = [(steps, broken), (steps, norms["block.conv3"]), (np.arange(1100, 1240, 10), late)]
    events = [(1100.0, "attach", "zero_fraction attached")]
    panel.draw(*lines_message(dict(zip(SERIES, values, strict=True)), events=events, smooth=0.9))
    if panel.row("block.relu3").is_visible():
        panel.row("block.relu2").click()
        panel.row("block.relu3").click(modifiers=["Control"])
        panel.choose("zero_fraction")
        panel.action("attach").click()
        click = panel.wait_sent("attach")["id"]
        panel.say(status_message(**changes, tickets=[ticket(click, "applied", 1237)]))
    return panel


@pytest.mark.parametrize(
    ("width", "theme", "lab"),
    [
        (1060, "light", False),
        (1060, "dark", False),
        (1400, "light", True),
        (1400, "dark", True),
        (640, "light", True),
        (640, "dark", False),
    ],
)
def test_text_is_readable_and_nothing_overflows(
    bare: PanelPage, width: int, theme: str, lab: bool
) -> None:
    panel = populate(bare.show(width, theme, lab))
    box = panel.heat.bounding_box()
    assert box is not None
    panel.page.mouse.move(box["x"] + 0.55 * box["width"], box["y"] + 120)
    expect(panel.page.locator(".nbp-tip:visible")).to_have_count(1)
    panel.picture(f"panel-{width}-{theme}{'-lab' if lab else ''}")
    assert panel.page.evaluate(FAINT) == []
    assert panel.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert panel.root.evaluate("(root) => root.scrollWidth <= root.clientWidth")


def trouble(panel: PanelPage) -> PanelPage:
    """A compiled model under a budget, silent probes, calls apart, a parameter of its own."""
    populate(panel)
    calls = [f"head.fc1[{call}]" for call in range(3)]
    entries = [*((call, "head.fc1") for call in calls), ("head.fc2.bias", "head.fc2")]
    panel.say(model_message(entries=entries))
    silent = [
        {"kind": "compiled", "reason": COMPILED, "probes": [0, 1, 2, 3]},
        {"kind": "silent", "reason": "called, but no gradient reached its output", "probes": [5]},
        {"kind": "waiting", "reason": "first value at step 1250", "probes": [6]},
    ]
    budget = "budget 2 % of step time: one of 4 due steps is measured"
    tallies = [(-1, 0.0, 0.0)] * 4 + [(1239, 8.4, 0.07), (410, 1300.0, 11.4)] + [(-1, 0.0, 0.0)] * 3
    panel.say(status_message(silent=silent, budget=budget, tallies=tallies))
    return panel


@pytest.mark.parametrize(
    ("width", "theme", "lab"),
    [(1060, "light", True), (1060, "dark", True), (800, "light", False), (640, "dark", True)],
)
def test_trouble_is_readable_too(bare: PanelPage, width: int, theme: str, lab: bool) -> None:
    panel = trouble(bare.show(width, theme, lab))
    name = f"{width}-{theme}{'-lab' if lab else ''}"
    expect(panel.action("eager")).to_be_visible()
    if width >= 1060:
        bar = panel.page.locator(".nbp-bar").bounding_box()
        assert bar is not None
        assert bar["height"] < 50, "the top bar is one line"
    panel.picture(f"trouble-{name}")
    assert panel.page.evaluate(FAINT) == []
    if width == 640:
        panel.action("modules").click()
    panel.action("silent").click()
    panel.picture(f"silent-{name}")
    assert panel.page.evaluate(FAINT) == []
    assert panel.root.evaluate("(root) => root.scrollWidth <= root.clientWidth")
    panel.page.keyboard.press("Escape")
    panel.row("stem.conv1").click()
    panel.row("block.bn3").click(modifiers=["Shift"])
    panel.action("here").click()
    panel.picture(f"here-{name}")
    assert panel.page.evaluate(FAINT) == []


def test_in_a_narrow_cell_the_tree_folds_away_behind_a_button(bare: PanelPage) -> None:
    panel = populate(bare.show(640))
    expect(panel.row("stem.conv1")).to_be_hidden()
    panel.action("modules").click()
    expect(panel.row("stem.conv1")).to_be_visible()
    panel.picture("panel-640-tree")
    panel.action("modules").click()
    expect(panel.row("stem.conv1")).to_be_hidden()


def test_a_change_of_theme_repaints_the_canvases(bare: PanelPage) -> None:
    panel = populate(bare.show())
    inks = [(31, 35, 40), (230, 233, 236)]
    assert panel.count_colour(panel.heat, inks[0]) > 0
    panel.page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    panel.page.wait_for_function(
        "getComputedStyle(document.querySelector('.nbp-panel')).colorScheme === 'dark'"
    )
    patience = time.monotonic() + 60
    while panel.count_colour(panel.heat, inks[0]):  # it is painted some frames behind the change
        assert time.monotonic() < patience
        panel.wait_frame()
    assert panel.count_colour(panel.heat, inks[1]) > 0


def test_colours_that_change_without_a_word_are_taken_up_by_later_frames(bare: PanelPage) -> None:
    panel = populate(bare.show())
    panel.page.evaluate("document.body.style.setProperty('--jp-ui-font-color1', 'rgb(9, 99, 199)')")
    patience = time.monotonic() + 60
    while not panel.count_colour(panel.heat, (9, 99, 199)):
        assert time.monotonic() < patience
        panel.say(status_message())  # drawn again as at every refresh
        panel.wait_frame()


def test_what_is_said_asks_for_no_style_before_the_frame(bare: PanelPage) -> None:
    """Each such question would have the whole page laid out amid the messages."""
    panel = populate(bare.show())
    panel.wait_frame()
    said = {"v": 1, "type": "ticket", **ticket("one-1", "applied", applied=1240)}
    asked = panel.page.evaluate(
        """(messages) => {
          const plain = window.getComputedStyle;
          let n = 0;
          window.getComputedStyle = (...of) => { n += 1; return plain(...of); };
          for (const message of messages) deliver(message, []);
          window.getComputedStyle = plain;
          return n;
        }""",
        [said, status_message(step=1240), {**said, "id": "one-2"}],
    )
    assert asked == 0


def test_the_focus_is_visible_on_every_control(bare: PanelPage) -> None:
    panel = populate(bare.show())
    ringed: set[str] = set()
    for _ in range(24):
        panel.page.keyboard.press("Tab")
        name, width = panel.page.evaluate(
            """() => { const node = document.activeElement, style = getComputedStyle(node);
            return [node.tagName + node.className, style.outlineStyle + style.outlineWidth]; }"""
        )
        assert width == "solid2px" or name.startswith("BODY"), name
        ringed.add(name)
    assert len(ringed) >= 8


def test_the_empty_panel_and_the_series_picker_are_worth_a_look(bare: PanelPage) -> None:
    panel = bare.show(1060, "light", lab=True)
    panel.say(model_message())
    status = status_message(state="waiting", step=0, rate=None, cost_percent=None)
    panel.say({**status, "attached": [], "recorded": {}, "scalar": ("loss", None, [])})
    panel.picture("panel-empty")
    populate(bare.show(1060, "dark", lab=True)).action("add").click()
    panel.page.keyboard.type("bn norm")
    panel.picture("panel-picker")
    assert panel.page.evaluate(FAINT) == []


def test_numbers_stand_in_columns(bare: PanelPage) -> None:
    panel = bare.show()
    assert panel.root.evaluate("(r) => getComputedStyle(r).fontVariantNumeric") == "tabular-nums"
