"""The full panel on a script whose record is in an object store, through its mailbox there."""

from __future__ import annotations

import os
import re
import signal
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

import notebook_probe as nbp
from tests.browser.explorer_page import PICTURES, Panel, plain
from tests.browser.lab import IS_ALIVE, Notebook, OpenNotebook
from tests.command_line.acting.training import endless_training
from tests.record.store.relay import Relay, relay_of
from tests.record.store.s3_server import BUCKET, s3_server

pytestmark = pytest.mark.s3

RAW = re.compile(r"Error|Debug|https?://|Traceback|GenericError")
"""Words of the messages of libraries, which no user should read."""


@dataclass(frozen=True)
class Far:
    """A place in the object store, and how both sides reach it."""

    relay: Relay
    url: str
    environment: Mapping[str, str]

    @property
    def cells(self) -> list[str]:
        """A notebook that opens the record there."""
        keys = {name: value for name, value in self.environment.items() if name != "HOME"}
        return [
            f"import os\nos.environ |= {keys}\nimport notebook_probe as nbp",
            f"nbp.open_run({self.url!r}).explore()",
            "print(os.getpid())",
        ]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def far(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with relay_of(server) as relay:
        place = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT": relay.endpoint}
        for name, value in {**keys, **place}.items():
            monkeypatch.setenv(name, value)
        # Spools are in the home; this one outlives the script.
        environment = {**keys, **place, "HOME": str(tmp_path)}
        yield Far(relay, f"s3://{BUCKET}/{uuid.uuid4()}", environment)


def shown(notebook: Notebook) -> Panel:
    """The panel of the training, once it trains."""
    notebook.run(0, 1)
    panel = Panel(notebook, 1)
    panel.wait_state("training")
    return panel


def attach_and_wait(panel: Panel, module: str, quantity: str) -> int:
    """Attach a quantity, wait for its series, and return the step from which it is measured."""
    panel.attach(module, quantity, "every(2)")
    attached = panel.wait_attached()
    panel.wait_points(f"{module} · {quantity}", 5)
    return attached


def picture(panel: Panel, name: str) -> None:
    panel.show()
    panel.notebook.screenshot(PICTURES / f"far_{name}.png")


def kill_kernel(notebook: Notebook) -> None:
    """Kill the kernel, and wait until JupyterLab has started another."""
    notebook.run(2)
    os.kill(int(notebook.text(2)), signal.SIGKILL)
    notebook.page.locator(".jp-Dialog button.jp-mod-accept").click()
    notebook.wait_connected()
    notebook.wait_until(IS_ALIVE)


def first_steps(far: Far, *series: tuple[str, str]) -> list[int]:
    record = nbp.open_run(far.url)
    return [int(record.series(module, quantity).step[0]) for module, quantity in series]


def test_a_click_acts_through_an_object_store_and_again_after_both_sides_were_killed(
    open_notebook: OpenNotebook, far: Far
) -> None:
    with endless_training(far.url, "mailbox", environment=far.environment) as training:
        notebook = open_notebook(far.cells)
        panel = shown(notebook)
        first = attach_and_wait(panel, "2", "input_std")
        picture(panel, "attached")
        before = nbp.open_run(far.url).attrs["run_id"]
        training.kill()
        kill_kernel(notebook)

    with endless_training(far.url, "mailbox", environment=far.environment) as training:
        panel = shown(notebook)
        second = attach_and_wait(panel, "0", "input_std")
        picture(panel, "restarted")
        assert second > first
        panel.press("stop")
        assert training.last_line() == "stopped 0.01"
        panel.wait_state("finished")
    record = nbp.open_run(far.url)
    assert record.attrs["run_id"] == before, "the same record"
    steps = record.data.step.values
    assert np.array_equal(np.unique(steps), steps)
    started = first_steps(far, ("2", "input_std"), ("0", "input_std"))
    assert started[0] in (first, first + 1)
    assert started[1] in (second, second + 1)


@pytest.mark.parametrize("trouble", ["hang", "refuse"])
def test_a_store_that_is_away_for_a_while_is_named_in_the_panel_which_recovers(
    open_notebook: OpenNotebook, far: Far, trouble: str
) -> None:
    with endless_training(far.url, "mailbox", environment=far.environment):
        panel = shown(open_notebook(far.cells))
        attach_and_wait(panel, "2", "input_std")
        bar = panel.root.locator(".nbp-bar")
        getattr(far.relay, trouble)()
        expect(panel.problems).to_contain_text(re.compile("no answer|cannot reach"))
        panel.attach("0", "input_std", "every(2)")
        expect(bar).to_contain_text("no answer")
        expect(bar).not_to_contain_text("kernel")
        expect(panel.problems).to_contain_text(re.compile(r"no answer for \d+ s: cannot reach"))
        expect(panel.ticket).to_have_attribute("data-state", "refused")
        expect(panel.ticket).to_contain_text("not sent: cannot reach the store of this record")
        assert not RAW.search(panel.root.inner_text())
        picture(panel, f"{trouble}_away")

        step = panel.step
        far.relay.resume()
        panel.wait_step(step + 1)
        expect(bar).not_to_contain_text("no answer")
        expect(panel.problems).to_have_text("")
        attach_and_wait(panel, "0", "input_mean")
        picture(panel, f"{trouble}_back")
        assert "0 · input_std" not in plain(panel.root.inner_text())
