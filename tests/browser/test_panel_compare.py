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
    state = {**told, "own": None, "runs": list(runs), "refused": {}, **changes}
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


ROWS = kernel.WEIGHTED[:7]
PARTED = {"block.conv3": 412, "block.bn3": 431, "head.fc1": 455, "block.conv2": 520}


def halves(values: npt.ArrayLike) -> bytes:
    return (np.asarray(values, "<f4").view("<u4") >> 16).astype("<u2").tobytes()


def ratio_message(
    apart: npt.ArrayLike, to: str = OTHERS[0], **changes: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """Rows x columns of decades; what is NaN was not measured in one of the runs."""
    cells = np.asarray(apart, "<f4")
    finite = cells[np.isfinite(cells)]
    message = {
        "v": 1,
        "type": "ratio",
        "quantity": "grad_norm",
        "to": to,
        "rows": ROWS[: len(cells)],
        "columns": cells.shape[1],
        "first_step": 0,
        "last_step": 4 * cells.shape[1] - 1,
        "limit": 1.0,
        "signed": False,
        "lowest": float(finite.min()),
        "highest": float(finite.max()),
    }
    return {**message, **changes}, [halves(cells), np.isnan(cells).astype(np.uint8).tobytes()]


def ratios() -> npt.NDArray[np.float64]:
    """Four rows part, one of them downwards; another is not measured at first."""
    columns = np.arange(310)
    cells = 0.05 * np.random.default_rng(2).normal(size=(7, 310))
    for module, step in PARTED.items():
        sign = -1.1 if module == "head.fc1" else 0.6
        cells[ROWS.index(module)] += sign / (1 + np.exp(-(columns - step / 4) / 4))
    cells[1, :40] = np.nan
    return cells


def parting_message(**changes: Any) -> dict[str, Any]:
    found = [
        {"module": module, "step": step, "there": "×2.1", "now": "×3.6"}
        for module, step in PARTED.items()
    ]
    message = {
        "v": 1,
        "type": "parting",
        "quantity": "grad_norm",
        "to": OTHERS[0],
        "text": "Parts from digits-cnn-8 at step 412: block.conv3 · grad_norm ×2.1",
        "bound": "×2",
        "found": found,
        "within": ["stem.conv1", "stem.bn1", "block.bn2"],
        "missing": [],
    }
    return {**message, **changes}


def divided(panel: PanelPage, **selection: Any) -> PanelPage:
    """The heat map shows the ratio to the first of two others."""
    compared(panel, ratio_to=OTHERS[0], **selection)
    values = np.random.default_rng(1).lognormal(size=(7, 310))
    panel.draw(*kernel.heat_message(values, ROWS, last_step=1239))
    panel.say(*two_beside())
    panel.say(*ratio_message(ratios()))
    panel.say(parting_message())
    panel.wait_frame()
    return panel


def drawer(panel: PanelPage) -> Locator:
    return panel.page.get_by_role("region", name="Where the runs part")


@pytest.mark.parametrize(
    ("width", "theme"), [(880, "light"), (880, "dark"), (1280, "dark"), (640, "light")]
)
def test_the_heat_map_shows_the_ratio_to_one_run_with_flags_and_the_drawer_where_they_part(
    page: PanelPage, width: int, theme: str
) -> None:
    panel = divided(introduce(page.show(width, theme)))
    expect(panel.heat).to_have_attribute("data-ratio-to", OTHERS[0])
    options = panel.page.locator("[data-action=heat-options]")
    expect(options).to_have_text("ratio to digits-cnn-8")
    foot = panel.page.locator(".nbp-parting")
    told = "Parts from digits-cnn-8 at step 412: block.conv3 · grad_norm ×2.1"
    expect(foot).to_contain_text(told)
    words = foot.locator("[role=status]")
    assert words.evaluate("(node) => node.clientWidth") > 150, "room for the first words"
    panel.action("partings").click()
    rows = drawer(panel).locator(".nbp-parted-rows .nbp-parted")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("block.conv3")
    expect(rows.nth(0)).to_contain_text("first")
    expect(rows.nth(0)).to_contain_text("412")
    expect(drawer(panel)).to_contain_text("stem.conv1, stem.bn1, block.bn2 stay within ×2")
    panel.picture(f"compare-{width}-{theme}")
    assert panel.errors == []


def test_a_flag_stands_where_a_row_parts(panel: PanelPage) -> None:
    divided(panel)
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    row = ROWS.index("block.conv3")
    height = (box[3] - box[1]) / 7
    middle = box[1] + (row + 0.5) * height
    x = round(panel.x_of_step(panel.heat, 412))
    ink = panel.page.evaluate("getComputedStyle(document.querySelector('.nbp-panel')).color")
    red, green, blue = (int(part) for part in re.findall(r"\d+", ink)[:3])
    seen = panel.pixel(panel.heat, x - 0.5, middle)
    assert np.abs(np.subtract(seen[:3], (red, green, blue))).max() < 90, "the line of the flag"
    beside_it = panel.pixel(panel.heat, x - 12, middle)
    assert min(beside_it[:3]) > 150, "pale before it"


def test_a_cell_tells_the_ratio_and_where_its_row_parts(panel: PanelPage) -> None:
    divided(panel)
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    y = box[1] + (ROWS.index("block.conv3") + 0.5) * (box[3] - box[1]) / 7
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 1000), "y": y})
    tip = panel.page.locator(".nbp-plot:has(.nbp-heat) .nbp-tip")
    expect(tip).to_contain_text(re.compile(r"grad_norm  ×[34]"))
    expect(tip).to_contain_text("of digits-cnn-8")
    expect(tip).to_contain_text("parts at step 412")


def test_what_is_not_measured_in_either_is_hatched(panel: PanelPage) -> None:
    divided(panel)
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    y = box[1] + 1.5 * (box[3] - box[1]) / 7
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 60), "y": y})
    expect(panel.page.locator(".nbp-plot:has(.nbp-heat) .nbp-tip")).to_contain_text("not measured")


def test_values_and_ratio_are_chosen_at_the_heat_map(panel: PanelPage) -> None:
    divided(panel)
    panel.action("heat-options").click()
    panel.page.locator("[data-role=heat-ratio-to] [data-value='']").click()
    wait_chosen(panel, ratio_to="")
    expect(panel.heat).not_to_have_attribute("data-ratio-to", re.compile(""))
    panel.page.locator(f"[data-role=heat-ratio-to] [data-value='{OTHERS[0]}']").click()
    wait_chosen(panel, ratio_to=OTHERS[0])
    expect(panel.heat).to_have_attribute("data-ratio-to", OTHERS[0])


def test_until_a_ratio_has_come_the_values_stand(panel: PanelPage) -> None:
    divided(panel)
    panel.say(kernel.selection_message(home="weight_norm", others=OTHERS, ratio_to=OTHERS[0]))
    expect(panel.heat).not_to_have_attribute("data-ratio-to", re.compile(""))
    expect(panel.page.locator(".nbp-parting")).to_be_hidden()


def test_signed_quantities_are_apart_in_spreads_and_the_bar_says_so(panel: PanelPage) -> None:
    divided(panel)
    panel.say(*ratio_message(3 * ratios(), signed=True, limit=3.0))
    panel.wait_frame()
    box = json.loads(panel.heat.get_attribute("data-box") or "")
    y = box[1] + (ROWS.index("block.conv3") + 0.5) * (box[3] - box[1]) / 7
    panel.heat.hover(position={"x": panel.x_of_step(panel.heat, 1000), "y": y})
    tip = panel.page.locator(".nbp-plot:has(.nbp-heat) .nbp-tip")
    expect(tip).to_contain_text(re.compile(r"grad_norm  \+1\.\d+ spreads"))
    panel.picture("compare-spreads")


def test_a_click_in_the_drawer_goes_to_module_and_step(panel: PanelPage) -> None:
    divided(panel, window=(0, 300)).action("partings").click()
    expect(drawer(panel)).to_contain_text("this run ÷ digits-cnn-8, steps in view")
    rows = drawer(panel).locator(".nbp-parted-rows .nbp-parted")
    rows.nth(0).focus()
    rows.nth(0).press("ArrowDown")
    rows.nth(1).press("Enter")
    expect(panel.row("block.bn3")).to_have_attribute("aria-selected", "true")
    first = (431 - 150, 431 + 150)
    wait_chosen(panel, window=first, series=[[*LOSS], [*CONV3], ["block.bn3", "grad_norm"]])
    drawer(panel).get_by_role("button", name="show").nth(0).click()
    expect(panel.row("block.conv3")).to_have_attribute("aria-selected", "true")


def test_both_numbers_are_edited_in_place_and_refused_in_words(panel: PanelPage) -> None:
    divided(panel).action("partings").click()
    factor = drawer(panel).get_by_role("textbox", name="factor")
    factor.fill("1")
    expect(drawer(panel)).to_contain_text("a number above 1 is needed")
    factor.press("Enter")
    assert all(one["apart"] == [2, 10] for one in panel.sent("selection"))
    factor.fill("3")
    factor.press("Escape")
    expect(factor).to_have_value("2")
    factor.fill("1.5")
    factor.press("Enter")
    wait_chosen(panel, apart=[1.5, 10])
    rows = drawer(panel).get_by_role("textbox", name="rows")
    rows.fill("2.5")
    expect(drawer(panel)).to_contain_text("a whole number above 0 is needed")
    rows.fill("25")
    rows.press("Enter")
    wait_chosen(panel, apart=[1.5, 25])


def test_runs_that_stay_together_say_so(panel: PanelPage) -> None:
    divided(panel)
    told = "They stay within ×2 at all 7 modules"
    panel.say(parting_message(found=[], within=ROWS, text=told))
    expect(panel.page.locator(".nbp-parting")).to_contain_text(told)
    panel.action("partings").click()
    expect(drawer(panel)).to_contain_text(told)
    expect(drawer(panel).locator(".nbp-parted-rows .nbp-parted")).to_have_count(0)
    panel.page.keyboard.press("Escape")


def test_a_run_that_cannot_be_compared_says_why_in_the_foot(panel: PanelPage) -> None:
    compared(panel)
    tells(panel, refused={OTHERS[0]: "epochs are not recorded in digits-cnn-8"})
    foot = panel.page.locator(".nbp-parting [role=status]")
    expect(foot).to_have_text("epochs are not recorded in digits-cnn-8")
    expect(panel.action("partings")).to_be_hidden()


def test_the_ratio_may_be_to_a_group(panel: PanelPage) -> None:
    divided(panel, grouped=True)
    expect(panel.page.locator("[data-action=heat-options]")).to_have_text("ratio to the group of 2")
    expect(panel.heat).to_have_attribute("data-ratio-to", OTHERS[0])
