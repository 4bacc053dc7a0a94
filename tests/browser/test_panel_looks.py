"""Looks of a real run, shown in place of the heat map: maps, the chosen one, facts, steps."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.parts.looks import LooksPart
from notebook_probe.explorer.parts.part import Seen
from tests.browser import panel_messages as kernel
from tests.browser.alert_messages import alert, alerts_message
from tests.browser.history_messages import branched
from tests.browser.panel_page import PanelPage


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        heads = x.unflatten(-1, (4, 4)).transpose(1, 2)
        out = nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return out.transpose(1, 2).flatten(2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> nbp.Run:
    """Three steps of a network of images with an attention behind; two looks and one."""
    torch.manual_seed(0)
    stem, patches = nn.Sequential(), nn.Flatten(2)
    stem.add_module("conv1", nn.Conv2d(1, 16, 5, padding=2))
    parts = {"stem": stem, "patches": patches, "attn": Attention(), "head": nn.Linear(16, 2)}
    model = nn.Sequential(OrderedDict(parts))
    patches.register_forward_hook(lambda _, __, out: out.transpose(1, 2)[:, :40])
    run = nbp.watch(model, store=tmp_path_factory.mktemp("looks") / "run.zarr", probes=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 14), torch.linspace(-1, 1, 14), indexing="ij")
    ring = torch.exp(-20 * (torch.sqrt(xx**2 + yy**2) - 0.6) ** 2)
    images = torch.stack([ring.roll(k, 1) for k in range(8)])[:, None]
    for module in ("stem.conv1", "stem.conv1", "attn"):
        run.look(module)
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()
    run.close()
    return run


class Kernel:
    """Answers what the panel asks of looks, as the kernel's part of it does."""

    def __init__(self, bare: PanelPage, run: nbp.Run) -> None:
        self.page, self.part = bare, LooksPart(run, None)
        self._n_answered = 0

    def tells(self, **changes: Any) -> None:
        head: Any = None
        state = self.part.state(Seen(head, PanelSelection()))
        self.page.say({"v": 1, "type": "looks", **state, **changes})

    def answers(self) -> None:
        """The next question."""
        self._n_answered += 1
        self.part.hear(self.page.wait_sent("show_look", self._n_answered))  # type: ignore[arg-type]
        for message, buffers in self.part.frames():
            self.page.say(message, [bytes(buffer) for buffer in buffers])


MODULES = [
    ("(root)", "Sequential", 1000, 0, -1),
    ("stem", "Sequential", 416, 0, 0),
    ("stem.conv1", "Conv2d", 416, 416, 1),
    ("attn", "Attention", 0, 0, 0),
    ("head", "Linear", 34, 34, 0),
]


def shown(bare: PanelPage) -> PanelPage:
    show(bare, 880)
    return bare


def show(bare: PanelPage, width: int, theme: str = "light") -> None:
    bare.show(width, theme)
    bare.say({**kernel.model_message(), "modules": MODULES, "entries": [], "kinds": []})
    bare.say(kernel.status_message(state="paused"))


def look(panel: PanelPage) -> Locator:
    return panel.page.locator(".nbp-look")


def opened(panel: PanelPage, run: nbp.Run, module: str = "stem.conv1") -> Kernel:
    answering = Kernel(panel, run)
    answering.tells()
    panel.row(module).click()
    panel.action("look").click()
    answering.answers()
    expect(look(panel)).to_be_visible()
    return answering


def test_a_look_is_asked_for_followed_and_shown_when_it_is_kept(
    panel: PanelPage, run: nbp.Run
) -> None:
    button = panel.action("look")
    expect(button).to_have_attribute("title", "Looks at one module at a time: mark it in the tree")
    panel.row("stem.conv1").click()
    button.click()
    asked = panel.wait_sent("look")
    assert asked["module"] == "stem.conv1"
    panel.say(kernel.status_message(tickets=[kernel.ticket(asked["id"], "applied", 1)]))
    expect(button).to_have_text("Looking at step 1 …")
    answering = Kernel(panel, run)
    answering.tells()
    answering.answers()
    expect(look(panel)).to_be_visible()
    expect(button).to_have_text("Look")
    expect(panel.heat).to_be_hidden()
    panel.say(kernel.status_message(step=2))
    panel.say(kernel.selection_message())
    expect(panel.heat).to_be_hidden()
    expect(panel.page.locator(".nbp-look-place")).to_have_text("step 1 · 2 of 2 kept")
    panel.page.keyboard.press("Escape")


def test_the_scale_of_a_tensor_stands_beside_its_name_however_wide_the_panel(
    bare: PanelPage, run: nbp.Run
) -> None:
    show(bare, 1600)
    opened(bare, run)
    for head in bare.page.locator(".nbp-look-head").all():
        scale, name = head.locator(".nbp-look-range"), head.locator("> *").first
        at, of = scale.bounding_box(), name.bounding_box()
        assert at is not None
        assert of is not None
        assert at["x"] - of["x"] < 400


def test_a_look_at_an_idle_run_says_what_it_waits_for(panel: PanelPage, run: nbp.Run) -> None:
    panel.row("stem.conv1").click()
    panel.action("look").click()
    asked = panel.wait_sent("look")
    said = panel.page.locator(".nbp-attach .nbp-look-said")
    queued = [kernel.ticket(asked["id"], "queued")]
    panel.say(kernel.status_message(state="training", tickets=queued))
    expect(said).to_have_text("")
    panel.say(kernel.status_message(state="idle", tickets=queued))
    expect(said).to_have_text(
        "It waits for the next training step: no loop runs now, and the last inputs no longer "
        "exist or changed"
    )
    expect(said).not_to_have_class(re.compile("nbp-bad"))
    panel.picture("look-idle")
    answering = Kernel(panel, run)
    answering.tells()
    answering.answers()
    expect(said).to_have_text("")


def test_what_came_to_nothing_says_why_beside_the_button(panel: PanelPage, run: nbp.Run) -> None:
    panel.row("attn").click()
    panel.action("look").click()
    asked = panel.wait_sent("look")
    panel.say(kernel.status_message(tickets=[kernel.ticket(asked["id"], "applied", 7)]))
    missed = [["attn", 7, "attn: it was not called in step 7"]]
    panel.say({"v": 1, "type": "looks", "looks": [], "asked": [], "missed": missed})
    said = panel.page.locator(".nbp-attach .nbp-look-said")
    expect(said).to_have_text("attn: it was not called in step 7")
    panel.action("look").click()
    refused = kernel.ticket(panel.wait_sent("look", 2)["id"], "refused", text="64 looks are kept")
    panel.say(kernel.status_message(tickets=[refused]))
    expect(said).to_have_text("64 looks are kept")


def test_after_a_refusal_nothing_is_asked_for_while_nothing_is_marked(panel: PanelPage) -> None:
    panel.row("attn").click()
    panel.action("look").click()
    asked = panel.wait_sent("look")
    panel.row("attn").click(modifiers=["Control"])
    refused = kernel.ticket(asked["id"], "refused", text="64 looks are kept")
    panel.say(kernel.status_message(tickets=[refused]))
    expect(panel.page.locator(".nbp-attach .nbp-look-said")).to_have_text("64 looks are kept")
    panel.action("look").click()
    assert panel.sent("look") == [asked]
    expect(panel.action("look")).to_have_text("Look")


def test_the_chosen_map_is_large_from_the_first_moment(panel: PanelPage, run: nbp.Run) -> None:
    opened(panel, run)
    box = panel.page.locator(".nbp-look-large canvas").first.bounding_box()
    assert box is not None
    assert box["width"] >= 120


def test_a_look_of_a_branch_that_was_left_is_not_waited_for(panel: PanelPage) -> None:
    panel.row("stem.conv1").click()
    panel.action("look").click()
    asked = panel.wait_sent("look")
    panel.say(kernel.status_message(tickets=[kernel.ticket(asked["id"], "applied", 169)]))
    expect(panel.action("look")).to_have_text("Looking at step 169 …")
    panel.say(branched(100, 200, 300))
    expect(panel.action("look")).to_have_text("Look")
    expect(panel.page.locator(".nbp-look-said").first).to_have_text(
        "Requested on the parent branch"
    )


@pytest.mark.parametrize(("width", "theme"), [(880, "light"), (1280, "dark"), (640, "light")])
def test_its_tensors_stand_in_blocks_with_the_chosen_channel_and_facts(
    bare: PanelPage, run: nbp.Run, width: int, theme: str
) -> None:
    show(bare, width, theme)
    if width < 740:
        bare.action("modules").click()
    opened(bare, run)
    if width < 740:
        bare.action("modules").click()
    names = ["output", "weight", "gradient", "update", "weight's gradient", "input"]
    expect(bare.page.locator(".nbp-look-head > b")).to_have_text(names)
    output = bare.page.locator("[data-tensor=output]")
    output.click(position={"x": 5, "y": 5})
    output.press("ArrowRight")
    expect(output).to_have_attribute("data-selected", "1")
    expect(bare.page.locator("[data-tensor=weight]")).to_have_attribute("data-selected", "1")
    expect(bare.page.locator(".nbp-look-large > b")).to_have_text("channel 1")
    large = bare.page.locator(".nbp-look-pair canvas").first
    large.hover(position={"x": 70, "y": 70})
    kept = run.looks[1].data.output[0, 1]
    words = bare.page.locator(".nbp-look-value")
    expect(words).to_contain_text("row 7, column 7")
    shown = float((words.text_content() or "").rpartition(": ")[2].replace("−", "-"))
    assert shown == pytest.approx(float(kept[7, 7]), rel=1e-4)
    bare.picture(f"look-{width}-{theme}")


@pytest.mark.parametrize("alerts", [[], ["stem.conv1", "head"]], ids=["quiet", "with-alerts"])
def test_the_foot_says_how_much_is_kept_while_one_is_looked_at(
    panel: PanelPage, run: nbp.Run, alerts: list[str]
) -> None:
    says = "outputs lie in few directions, and come to no more of them while it learns"
    found = [alert(1, "rank_collapse", [one], ["effective_rank"], says) for one in alerts]
    panel.say(alerts_message(found))
    said = panel.page.locator("[data-role=looks-kept]")
    foot = panel.page.locator(".nbp-foot")
    high = foot.evaluate("(foot) => foot.offsetHeight")
    opened(panel, run)
    size = panel.call("bytes", sum(look.nbytes for look in run.looks))
    whole = f"3 looks kept, {size}; the record keeps at most 64"
    expect(said).to_have_text(whole.partition(";")[0] if alerts else whole)
    expect(said).to_have_attribute("title", whole)
    assert foot.evaluate("(foot) => foot.offsetHeight") == high
    panel.picture(f"look-kept-{len(alerts)}")
    panel.action("leave-look").click()
    expect(said).to_be_hidden()
    assert panel.errors == []


def test_earlier_and_later_looks_and_two_beside_each_other(panel: PanelPage, run: nbp.Run) -> None:
    answering = opened(panel, run)
    place = panel.page.locator(".nbp-look-place")
    panel.action("earlier-look").click()
    answering.answers()
    expect(place).to_have_text("step 0 · 1 of 2 kept")
    expect(panel.action("earlier-look")).to_have_attribute("aria-disabled", "true")
    panel.page.locator("[data-tensor=weight]").press("]")
    answering.answers()
    expect(place).to_have_text("step 1 · 2 of 2 kept")
    panel.page.locator("[data-role=look-other]").select_option("0")
    answering.answers()
    expect(panel.page.locator(".nbp-look-pair canvas:visible")).to_have_count(2)
    expect(panel.page.locator(".nbp-look-facts tr").nth(1)).to_contain_text("10")
    panel.picture("look-with-another")
    panel.page.locator("[data-role=look-difference]").check()
    expect(panel.page.locator(".nbp-look-pair canvas:visible")).to_have_count(1)
    panel.page.locator("[data-role=look-sample]").select_option("3")
    answering.answers()
    assert panel.sent("show_look")[-1]["sample"] == 3


def test_heads_are_shown_as_shares_with_query_and_key(panel: PanelPage, run: nbp.Run) -> None:
    opened(panel, run, "attn")
    heads = panel.page.locator("[data-tensor=attention]")
    heads.click(position={"x": 5, "y": 5})
    heads.press("ArrowRight")
    expect(panel.page.locator(".nbp-look-large > b")).to_have_text("head 1")
    panel.page.locator(".nbp-look-pair canvas").first.hover(position={"x": 2, "y": 100})
    expect(panel.page.locator(".nbp-look-value")).to_contain_text("→ key 0")
    panel.picture("look-heads")


def test_the_heat_map_comes_back(panel: PanelPage, run: nbp.Run) -> None:
    opened(panel, run)
    panel.action("leave-look").click()
    expect(look(panel)).to_be_hidden()
    expect(panel.heat).to_be_visible()
    expect(panel.action("look")).to_be_focused()


def test_an_opened_record_shows_what_is_kept_and_asks_for_nothing(
    bare: PanelPage, run: nbp.Run
) -> None:
    bare.show(880)
    message = kernel.model_message()
    bare.say({**message, "modules": MODULES, "entries": [], "kinds": [], "live": False})
    bare.say(kernel.status_message(state="finished"))
    answering = Kernel(bare, run)
    answering.tells()
    bare.row("stem.conv1").click()
    bare.page.locator(".nbp-panel").press("l")
    answering.answers()
    expect(look(bare)).to_be_visible()
    assert bare.sent("look") == []
    expect(bare.action("look-again")).to_be_hidden()


def test_a_look_stays_in_place_of_the_heat_map_whatever_is_told(
    panel: PanelPage, run: nbp.Run
) -> None:
    opened(panel, run)
    panel.say(kernel.status_message(state="paused"))
    panel.say(kernel.selection_message())
    panel.wait_frame()
    expect(panel.heat).to_be_hidden()
    expect(look(panel)).to_be_visible()


def test_keys_go_through_the_looks_wherever_the_focus_is(panel: PanelPage, run: nbp.Run) -> None:
    answering = Kernel(panel, run)
    answering.tells()
    panel.row("stem.conv1").click()
    place = panel.page.locator(".nbp-look-place")
    for key, says in (("]", "step 1 · 2"), ("[", "step 0 · 1"), ("]", "step 1 · 2")):
        panel.root.focus()
        panel.page.keyboard.press(key)
        answering.answers()
        expect(place).to_have_text(f"{says} of 2 kept")
    assert panel.sent("look") == []
