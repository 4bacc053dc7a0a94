"""Two recorded runs of a model of 96 modules compared in the panel, by the panel's own session."""

from __future__ import annotations

import base64
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.parts.compare import Compare
from tests.browser.lab import PATIENCE_S
from tests.browser.panel_page import PanelPage

N_BLOCKS, N_STEPS, PLANTED = 19, 60, 25
LATE = "blocks.12.up"
"""From step 25 on this layer is trained with ten times the rate, in one of the runs."""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up = nn.LayerNorm(8), nn.Linear(8, 16)
        self.act, self.down = nn.GELU(), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.3 * self.down(self.act(self.up(self.norm(x))))


def model() -> nn.Module:
    torch.manual_seed(0)
    blocks = nn.Sequential(*(Block() for _ in range(N_BLOCKS)))
    return nn.Sequential(OrderedDict(blocks=blocks, head=nn.Linear(8, 1)))


def train(path: Path, faster: float) -> None:
    net = model()
    late = dict(net.named_modules())[LATE]
    chosen = set(late.parameters())
    rest = [one for one in net.parameters() if one not in chosen]
    optimizer = torch.optim.SGD([{"params": rest}, {"params": [*chosen]}], lr=1e-3)
    inputs = torch.randn(16, 8, generator=torch.Generator().manual_seed(1))
    config = {"lr of the late layer": faster * 1e-3}
    with nbp.watch(net, store=path, probes=None, name=path.stem, config=config) as run:
        run.attach("Linear", "update_ratio", "every(1)")
        for step in range(N_STEPS):
            optimizer.param_groups[1]["lr"] = 1e-3 * (faster if step >= PLANTED else 1.0)
            optimizer.zero_grad()
            loss = (net(inputs) - 1).square().mean()
            loss.backward()
            run.log(loss=loss)
            optimizer.step()


class Kernel:
    """A panel's session on an opened record, whose views are a page."""

    def __init__(self, page: PanelPage, source: Any) -> None:
        self.page, self.session = page, PanelSession(source, None)
        self._n_heard = 0
        parts = self.session._parts._parts
        self._shelf = next(one for one in parts if isinstance(one, Compare))._shelf

    def until(self, place: Locator, text: str) -> None:
        """Hear the page and tell it what is new until it says something."""
        latest_s = time.monotonic() + PATIENCE_S
        while text not in "".join(place.all_text_contents()):
            assert time.monotonic() < latest_s, f"{text!r} is not said"
            self._turn()

    def until_drawn(self, series: str) -> None:
        """The same, until a series of the other run is drawn."""
        latest_s = time.monotonic() + PATIENCE_S
        while series not in (self.page.lines.get_attribute("data-beside") or ""):
            assert time.monotonic() < latest_s, f"{series!r} is not drawn"
            self._turn()

    def _turn(self) -> None:
        self.page.wait_frame()
        heard = self.page.page.evaluate("(n) => sent.slice(n)", self._n_heard)
        self._n_heard += len(heard)
        for message in heard:
            self.session.receive(parse(message))  # type: ignore[arg-type]
        self.session.publish(self._say, "own subshell", self.session.head())
        done = threading.Event()
        self._shelf.do(done.set)
        assert done.wait(PATIENCE_S)

    def _say(self, message: Any, buffers: Any) -> None:
        texts = [base64.b64encode(bytes(one)).decode() for one in buffers]
        self.page.page.evaluate("([message, texts]) => deliver(message, texts)", [message, texts])


@pytest.mark.stories
def test_two_runs_of_a_large_model_part_where_one_layer_was_trained_faster(
    bare: PanelPage, tmp_path: Path
) -> None:
    for name, faster in (("own", 10.0), ("before", 1.0)):
        train(tmp_path / f"{name}.zarr", faster)
    run = nbp.open_run(tmp_path / "own.zarr")
    assert len(run.modules) > 60
    panel = bare.show(880)
    kernel = Kernel(panel, run)
    kernel.until(panel.action("runs"), "own")
    panel.action("runs").click()
    row = panel.page.locator(".nbp-run-rows .nbp-run-row")
    kernel.until(row, "lr of the late layer 0.001, here 0.01")
    panel.page.get_by_role("checkbox", name="Compare with before").check()
    foot = panel.page.locator(".nbp-parting")
    kernel.until(foot, f"Differs from before at step {PLANTED}: {LATE} · update_ratio ×")
    there = str(tmp_path / "before.zarr")
    panel.page.locator(f"[data-role=ratio-to] [data-value='{there}']").click()
    panel.picture("compare-real-picker")
    panel.page.keyboard.press("Escape")
    expect(panel.heat).to_have_attribute("data-ratio-to", there)
    panel.action("partings").click()
    expect(panel.page.locator(".nbp-parted-rest")).not_to_contain_text("not in both")
    first = panel.page.locator(".nbp-parted-rows .nbp-parted").first
    expect(first).to_contain_text(LATE)
    first.get_by_role("button", name="show").click()
    expect(panel.row(LATE)).to_have_attribute("aria-selected", "true")
    kernel.until(panel.page.locator(".nbp-chips"), "12.up")
    kernel.until_drawn(f"{LATE} · update_ratio")
    panel.picture("compare-real")
    panel.page.get_by_text("Data ↓").click()
    with panel.page.expect_download() as download:
        panel.page.locator("[data-export=csv]").click()
        kernel.until(panel.page.locator("[data-role=export]"), "own.csv saved")
    rows = download.value.path().read_text().splitlines()
    assert rows[0] == "run,module,quantity,step,time,value"
    assert {row.partition(",")[0] for row in rows[1:]} == {"own", "before"}
    assert panel.errors == []
