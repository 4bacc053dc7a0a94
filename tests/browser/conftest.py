"""One headless Chromium and one JupyterLab for every browser test; nothing leaves this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.browser.lab import PATIENCE_S, LabServer, Notebook, OpenNotebook
from tests.browser.panel_messages import model_message, selection_message, status_message
from tests.browser.panel_page import PanelPage, one_page
from tools.find_browser import ADVICE, systems

LOOPBACK = {"127.0.0.1", "localhost"}
CHROMIUM_FLAGS = [
    "--no-sandbox",  # Chromium refuses to start as root with it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # Blocked in the browser itself: a route of Playwright's would see every file of JupyterLab.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all browser tests on one worker, so that they share one browser and one server.

    Those in a JupyterLab are slow.
    """
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.timeout(5 * PATIENCE_S))
        if "lab" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


def find_chromium(playwright: Playwright) -> str:
    """Path of the browser to drive; without one the tests fail and say what to install."""
    own = playwright.chromium.executable_path
    found = os.environ.get("NOTEBOOK_PROBE_BROWSER") or (own if Path(own).exists() else systems())
    if found is None:
        pytest.fail(ADVICE)
    return found


# Package scope, not session: while Playwright's synchronous API is alive this thread counts as
# running an asyncio loop, and tests elsewhere may want to start one.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The one headless Chromium of all browser tests."""
    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=find_chromium(playwright), args=CHROMIUM_FLAGS
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page; asking for anything but this machine fails the test."""
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_S * 1000)
    context.on("request", lambda request: asked.append(request.url))
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())  # "leave this page?"
    page.on("websocket", lambda socket: asked.append(socket.url))
    yield page
    context.close()
    outside = [url for url in asked if (urlsplit(url).hostname or "localhost") not in LOOPBACK]
    assert not outside, f"the page asked for something outside this machine: {outside}"


@pytest.fixture(scope="module")
def bare(browser: Browser) -> Iterator[PanelPage]:
    """A page for panels, with a fake kernel; one for all tests of a file."""
    yield from one_page(browser)


@pytest.fixture
def shown(bare: PanelPage) -> PanelPage:
    """A panel with a model, a status, and gradient norms as its home."""
    panel = bare.show()
    panel.say(model_message())
    panel.say(status_message())
    panel.say(selection_message())
    return panel


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """The one JupyterLab server of all browser tests, with folders of its own."""
    server = LabServer(tmp_path_factory.mktemp("lab"))
    yield server
    server.close()


@pytest.fixture
def open_notebook(lab: LabServer, page: Page) -> Iterator[OpenNotebook]:
    """Opens a notebook in JupyterLab on this test's page; its kernel ends with the test."""
    yield lambda source, kernel="python3": Notebook(page, lab, lab.add(source, kernel))
    lab.end_kernels()
    lab.reset_settings()
