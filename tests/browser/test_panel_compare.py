"""Other runs beside this one: the list of them, lines, ratios and where they part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.browser import panel_messages as kernel
from tests.browser.panel_page import PanelPage, introduce, one_page

NOW_MS = 1_790_000_000_000


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[PanelPage]:
    yield from one_page(browser)


@pytest.fixture
def panel(page: PanelPage) -> PanelPage:
    return introduce(page.show(880))


def run(name: str, last: float | None = 0.2, **changes: Any) -> dict[str, Any]:
    """A row of the list as the kernel tells it."""
    line = [2.0 / (1 + k / 6) for k in range(30)]
    row = {
        "run": f"runs/{name}.zarr",
        "name": name,
        "begun_ms": NOW_MS,
        "steps": 1860,
        "finished": True,
        "scalar": "loss",
        "line": [*line, last],
        "last": last,
        "differs": "",
        "problem": "",
    }
    return {**row, **changes}


RUNS = [
    run("digits-cnn-8", 0.213, differs="lr 1e-3, here 3e-3", begun_ms=NOW_MS + 5_000_000),
    run("digits-cnn-7", 0.187, differs="batch 128, here 64"),
    run("digits-cnn-5", 0.164, differs="GroupNorm, here BatchNorm; seed 3, here 0"),
    run("digits-cnn-4", None, differs="lr 3e-2, here 3e-3", steps=402),
    run("digits-cnn-3", 0.4),
    run("digits-cnn-2", problem="cannot be read: written by a newer version", line=[], steps=0),
]


def tells(panel: PanelPage, runs: Sequence[Any] = tuple(RUNS), **changes: Any) -> None:
    told = {"folder": "runs", "listed": True, "problem": "", "n_left_out": 0}
    state = {**told, "runs": list(runs), "refused": {}, **changes}
    panel.say({"v": 1, "type": "compare", **state})


def dialog(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("dialog", name="Runs")


def tick(panel: PanelPage, name: str) -> Locator:
    return panel.page.get_by_role("checkbox", name=f"Compare with {name}", exact=True)


def chosen(panel: PanelPage) -> dict[str, Any]:
    """What the panel has asked the kernel to show, at last."""
    panel.page.wait_for_function("sent.some((m) => m.type === 'selection')")
    return panel.sent("selection")[-1]


def wait_chosen(panel: PanelPage, **fields: Any) -> None:
    panel.page.wait_for_function(
        """(fields) => { const last = sent.findLast((m) => m.type === "selection");
        return last && Object.entries(fields).every(([name, value]) =>
          JSON.stringify(last[name]) === JSON.stringify(value)); }""",
        arg=fields,
    )


def opened(panel: PanelPage) -> PanelPage:
    panel.action("runs").click()
    tells(panel)
    expect(dialog(panel)).to_be_visible()
    return panel


def test_the_name_opens_the_runs_of_the_folder_newest_first(panel: PanelPage) -> None:
    opened(panel)
    panel.wait_sent("list_runs")
    names = dialog(panel).locator(".nbp-run-rows .nbp-cut:first-of-type")
    expect(names.nth(0)).to_have_text("digits-cnn-8")
    expect(dialog(panel).locator(".nbp-run-rows .nbp-run-row")).to_have_count(6)
    expect(dialog(panel)).to_contain_text("in runs/; ticked ones are drawn beside this one")
    row = dialog(panel).locator(".nbp-run-row", has_text="digits-cnn-8")
    expect(row).to_contain_text("1\u202f860")
    expect(row).to_contain_text("0.213")
    expect(row).to_contain_text("lr 1e-3, here 3e-3")
    own = dialog(panel).locator(".nbp-here")
    expect(own).to_contain_text("digits-cnn")
    expect(own).to_contain_text("now")
    expect(own).to_contain_text("this run")


@pytest.mark.parametrize(("width", "theme"), [(880, "light"), (1280, "dark"), (640, "light")])
def test_a_tick_draws_a_run_beside_this_one_and_the_bar_counts_them(
    page: PanelPage, width: int, theme: str
) -> None:
    panel = opened(introduce(page.show(width, theme)))
    tick(panel, "digits-cnn-8").check()
    tick(panel, "digits-cnn-5").check()
    wait_chosen(panel, others=["runs/digits-cnn-8.zarr", "runs/digits-cnn-5.zarr"])
    expect(panel.action("runs")).to_contain_text("+2")
    expect(panel.action("runs")).to_have_attribute("title", re.compile("beside digits-cnn-8"))
    box = panel.page.locator(".nbp-bar").bounding_box()
    assert box is not None
    assert box["height"] < 48
    inside = dialog(panel).locator(".nbp-runs")
    assert inside.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    panel.picture(f"compare-pick-{width}-{theme}")
    tick(panel, "digits-cnn-8").uncheck()
    wait_chosen(panel, others=["runs/digits-cnn-5.zarr"])


def test_at_most_four_runs_stand_beside_one(panel: PanelPage) -> None:
    opened(panel)
    for name in ("digits-cnn-8", "digits-cnn-7", "digits-cnn-5", "digits-cnn-4", "digits-cnn-3"):
        tick(panel, name).click()
    expect(dialog(panel)).to_contain_text("At most 4 beside this one: take another away first")
    expect(tick(panel, "digits-cnn-3")).not_to_be_checked()
    wait_chosen(panel, others=[one["run"] for one in RUNS[:4]])


def test_what_is_typed_finds_runs_by_name_and_by_what_they_differ_in(panel: PanelPage) -> None:
    opened(panel)
    search = panel.page.locator("[data-role=find-run]")
    expect(search).to_be_focused()
    rows = dialog(panel).locator(".nbp-run-rows .nbp-run-row")
    search.fill("lr=1e-3")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("digits-cnn-8")
    search.fill("digits-cnn-9")
    expect(rows).to_have_count(0)
    expect(dialog(panel)).to_contain_text("Nothing is called digits-cnn-9; near: digits-cnn-8")


def test_a_path_or_a_url_that_is_typed_is_opened(panel: PanelPage) -> None:
    opened(panel)
    search = panel.page.locator("[data-role=find-run]")
    search.fill("s3://bucket/teacher.zarr")
    expect(panel.action("open-run")).to_have_text("Open s3://bucket/teacher.zarr")
    search.press("Enter")
    wait_chosen(panel, others=["s3://bucket/teacher.zarr"])
    gone = run("teacher", line=[], steps=0, problem="cannot be read: no record at s3://bucket")
    tells(panel, [*RUNS, {**gone, "run": "s3://bucket/teacher.zarr"}])
    row = dialog(panel).locator(".nbp-run-row", has_text="teacher")
    expect(row).to_contain_text("cannot be read: no record at s3://bucket")
    expect(tick(panel, "teacher")).to_be_checked()  # so that it can be taken away


def test_a_record_that_cannot_be_read_stays_with_its_reason(panel: PanelPage) -> None:
    opened(panel)
    row = dialog(panel).locator(".nbp-run-row", has_text="digits-cnn-2")
    expect(row).to_contain_text("cannot be read: written by a newer version")
    expect(tick(panel, "digits-cnn-2")).to_be_disabled()
    unread = run("slow", line=[], steps=0, begun_ms=0)
    tells(panel, [unread])
    expect(dialog(panel).locator(".nbp-run-rows")).to_contain_text("reading …")
    expect(tick(panel, "slow")).to_be_enabled()


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({}, "No other run in runs/"),
        ({"listed": False}, "Reading runs/ …"),
        ({"folder": ""}, "are not listed: type a path or a URL"),
        ({"problem": "runs cannot be listed: Permission denied"}, "Permission denied"),
    ],
)
def test_a_list_without_runs_says_why(panel: PanelPage, told: dict[str, Any], says: str) -> None:
    panel.action("runs").click()
    tells(panel, [], **told)
    expect(dialog(panel).locator(".nbp-runs-said")).to_contain_text(says)


def test_the_list_is_used_with_the_keyboard_alone(panel: PanelPage) -> None:
    panel.root.focus()
    panel.page.keyboard.press("r")
    tells(panel)
    search = panel.page.locator("[data-role=find-run]")
    expect(search).to_be_focused()
    search.press("ArrowDown")
    panel.page.keyboard.press("ArrowDown")
    expect(tick(panel, "digits-cnn-7")).to_be_focused()
    panel.page.keyboard.press("Space")
    wait_chosen(panel, others=["runs/digits-cnn-7.zarr"])
    panel.page.keyboard.press("Escape")
    expect(dialog(panel)).to_have_count(0)
    expect(panel.action("runs")).to_be_focused()


def test_a_name_with_markup_is_shown_as_it_is(panel: PanelPage) -> None:
    opened(panel)
    tells(panel, [run("<img src=x onerror=alert(1)>", differs="<b>lr</b>")])
    row = dialog(panel).locator(".nbp-run-rows .nbp-run-row")
    expect(row).to_contain_text("<img src=x onerror=alert(1)>")
    expect(row).to_contain_text("<b>lr</b>")
    assert panel.errors == []


OTHERS = ["runs/digits-cnn-8.zarr", "runs/digits-cnn-5.zarr"]
CONV3 = ("block.conv3", "grad_norm")
LOSS = ("(root)", "loss")


def decay(to: float, seed: int, n: int = 1241) -> npt.NDArray[np.float64]:
    noise = np.random.default_rng(seed).normal(0, 0.05, n)
    return np.asarray(to + 2.3 * np.exp(-np.arange(n) / 120 + noise) * np.exp(noise))


def beside_message(
    lines: Mapping[tuple[str, str, str], tuple[npt.ArrayLike, ...]], **changes: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """(run, module, quantity) -> steps, values and, of a group, low and high."""
    series, parts, offset = [], [], 0
    for (run_, module, quantity), arrays in lines.items():
        n = len(np.asarray(arrays[0])) if arrays else 0
        head = {"run": run_, "module": module, "quantity": quantity, "n": n, "offset": offset}
        series.append({**head, "n_runs": 0 if run_ else 3, "banded": len(arrays) == 4})
        parts += [np.asarray(one, "<f4") for one in arrays]
        offset += n * len(arrays)
    message = {"v": 1, "type": "beside", "aligned": "step", "x0": 0.0, "series": series}
    return {**message, **changes}, [b"".join(part.tobytes() for part in parts)]


def compared(panel: PanelPage, **selection: Any) -> PanelPage:
    """Two others beside a run whose loss and one gradient norm are drawn."""
    steps = np.arange(1241)
    series = {LOSS: (steps, decay(0.14, 1)), CONV3: (steps, decay(1.1, 2))}
    panel.say(kernel.status_message(logged=["loss"]))
    chosen = {"series": list(series), "smooth": 0.9, "others": OTHERS, **selection}
    panel.say(kernel.selection_message(**chosen))
    tells(panel)
    panel.draw(*kernel.lines_message(series, smooth=0.9))
    return panel


def beside(panel: PanelPage) -> list[list[Any]]:
    panel.wait_frame()
    return list(json.loads(panel.lines.get_attribute("data-beside") or ""))


def two_beside() -> tuple[dict[str, Any], list[bytes]]:
    """One run that measured both, longer than this one, and one that has no gradient norm."""
    long, short = np.arange(0, 1860, 4), np.arange(0, 1860, 4)
    return beside_message(
        {
            (OTHERS[0], *LOSS): (long, decay(0.213, 3, 1860)[::4]),
            (OTHERS[0], *CONV3): (long, decay(0.29, 4, 1860)[::4]),
            (OTHERS[1], *LOSS): (short, decay(0.164, 5, 1860)[::4]),
            (OTHERS[1], *CONV3): (),
        }
    )


@pytest.mark.parametrize(("width", "theme"), [(880, "light"), (1280, "dark"), (640, "light")])
def test_lines_of_other_runs_stand_beside_in_the_same_colour_named_by_run(
    page: PanelPage, width: int, theme: str
) -> None:
    panel = compared(introduce(page.show(width, theme)))
    assert beside(panel) == []
    panel.say(*two_beside())
    assert beside(panel) == [
        ["digits-cnn-8", "loss", 465],
        ["digits-cnn-8", "block.conv3 · grad_norm", 465],
        ["digits-cnn-5", "loss", 465],
        ["digits-cnn-5", "block.conv3 · grad_norm", 0],
    ]
    _, high = json.loads(panel.lines.get_attribute("data-axis") or "")
    assert high < 1400, "the axis is this run's"
    panel.picture(f"compare-lines-{width}-{theme}")
    expect(panel.page.locator("[data-action=line-options]")).to_contain_text("by step")


def test_a_hover_tells_the_values_of_the_other_runs_too(panel: PanelPage) -> None:
    compared(panel).say(*two_beside())
    panel.wait_frame()
    panel.lines.hover(position={"x": panel.x_of_step(panel.lines, 620), "y": 60})
    tip = panel.page.locator(".nbp-plot:has(.nbp-lines) .nbp-tip")
    expect(tip).to_contain_text("digits-cnn-8: loss")
    expect(tip).to_contain_text("digits-cnn-5: loss")


def test_what_is_taken_away_is_drawn_no_more_at_once(panel: PanelPage) -> None:
    compared(panel).say(*two_beside())
    panel.action("runs").click()
    tick(panel, "digits-cnn-8").uncheck()
    assert [name for name, *_ in beside(panel)] == ["digits-cnn-5", "digits-cnn-5"]
    tick(panel, "digits-cnn-5").uncheck()
    assert beside(panel) == []


def test_several_runs_are_drawn_as_a_group_with_their_mean_and_their_extremes(
    panel: PanelPage,
) -> None:
    compared(panel)
    panel.action("runs").click()
    panel.page.locator("[data-role=grouped] [data-value=group]").click()
    wait_chosen(panel, grouped=True)
    panel.page.keyboard.press("Escape")
    steps = np.arange(0, 1241, 4)
    mean = decay(0.2, 3)[::4]
    panel.say(*beside_message({("", *LOSS): (steps, mean, 0.6 * mean, 1.5 * mean)}))
    assert beside(panel) == [["mean of 3 runs", "loss", len(steps)]]
    panel.picture("compare-group")


def test_runs_are_aligned_by_what_is_chosen_and_a_refusal_stands_beside_it(
    panel: PanelPage,
) -> None:
    compared(panel).action("runs").click()
    panel.page.locator("[data-role=aligned] [data-value=samples]").click()
    wait_chosen(panel, aligned="samples")
    refusal = "samples are not recorded in digits-cnn-5; run.log(samples=...) does it"
    tells(panel, refused={OTHERS[1]: refusal})
    expect(dialog(panel).locator(".nbp-refused")).to_have_text(refusal)
    expect(panel.page.locator("[data-action=line-options]")).to_contain_text("by samples")
    panel.page.locator("[data-role=aligned] [aria-checked=true]").press("ArrowRight")
    wait_chosen(panel, aligned="epochs")
    panel.picture("compare-refused")
