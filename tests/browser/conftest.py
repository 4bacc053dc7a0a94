"""One headless Chromium and one JupyterLab per worker; nothing leaves this machine."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.browser.lab import PATIENCE_S, LabServer, Notebook, OpenNotebook
from tests.browser.panel_page import PanelPage, introduce, one_page
from tests.browser.panel_parts import PanelParts, node_parts
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
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deal the files of browser tests to the workers, so that each starts one browser.

    Tests in a JupyterLab are slow.
    """
    browser_tests = [item for item in items if "browser" in getattr(item, "fixturenames", ())]
    for is_in_lab in (False, True):  # dealt apart: a command runs the one kind, the other, or both
        chosen = [item for item in browser_tests if is_in_lab == needs_lab(item)]
        group_of = dealt(Counter(item.path for item in chosen), worker_count(config))
        for item in chosen:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.timeout(5 * PATIENCE_S))
            item.add_marker(pytest.mark.xdist_group(f"browser {group_of[item.path]}"))
            if is_in_lab:
                item.add_marker(pytest.mark.slow)


def needs_lab(item: pytest.Item) -> bool:
    return "lab" in getattr(item, "fixturenames", ())


def worker_count(config: pytest.Config) -> int:
    """Return how many processes share the tests; all of them must deal alike."""
    told: int = getattr(config, "workerinput", {}).get("workercount", 1)
    return told


def dealt(sizes: Counter[Path], n_groups: int) -> dict[Path, int]:
    """Return a group for each file: the largest file first, each to the smallest group."""
    totals = [0] * n_groups
    group_of = {}
    for path, size in sorted(sizes.items(), key=lambda pair: (-pair[1], pair[0])):
        group_of[path] = totals.index(min(totals))
        totals[group_of[path]] += size
    return group_of


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
    """The one headless Chromium of a worker."""
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


@pytest.fixture(scope="package")
def parts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PanelParts]:
    """The panel's functions, for tests that only call them."""
    if node := shutil.which("node"):
        with node_parts(node, tmp_path_factory.mktemp("parts")) as started:
            yield started
    else:
        for panel in one_page(request.getfixturevalue("browser")):
            yield panel.show()


@pytest.fixture(scope="package")
def bare(browser: Browser) -> Iterator[PanelPage]:
    """A page for panels, with a fake kernel; each `show` begins from an empty cell."""
    yield from one_page(browser)


@pytest.fixture
def panel(bare: PanelPage, request: pytest.FixtureRequest) -> PanelPage:
    """A panel as the test file's ``shown(bare)`` shows it, or else after a kernel's first words."""
    show = getattr(request.module, "shown", None)
    found: PanelPage = show(bare) if show else introduce(bare.show(880))
    return found


@pytest.fixture
def shown(bare: PanelPage) -> PanelPage:
    """A panel with a model, a status, and gradient norms as its home."""
    return introduce(bare.show())


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """The one JupyterLab server of a worker, with its own folders."""
    server = LabServer(tmp_path_factory.mktemp("lab"))
    yield server
    server.close()


@pytest.fixture
def open_notebook(lab: LabServer, page: Page) -> Iterator[OpenNotebook]:
    """Opens a notebook in JupyterLab on this test's page; its kernel ends with the test."""
    yield lambda source, kernel="python3": Notebook(page, lab, lab.add(source, kernel))
    lab.end_kernels()
    lab.reset_settings()
