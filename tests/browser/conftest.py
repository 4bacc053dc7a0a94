"""One headless Chromium for every browser test, and pages that may not leave this machine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, Route, sync_playwright

SYSTEM_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = [
    "--no-sandbox",  # Chromium refuses to start as root with it
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all browser tests on one worker, so that they share one browser and one server."""
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))


def find_chromium(playwrights_own: str) -> str:
    """Path of the browser to drive: Playwright's own, else one installed on this machine."""
    if Path(playwrights_own).exists():
        return playwrights_own
    found = next(filter(None, map(shutil.which, SYSTEM_BROWSERS)), None)
    if found is None:
        pytest.fail(
            "no browser to test in: run `playwright install chromium`, or install Chromium or "
            f"Chrome with the system's packages (looked for {', '.join(SYSTEM_BROWSERS)})"
        )
    return found


# Package scope, not session: while Playwright's synchronous API is alive this thread counts as
# running an asyncio loop, and tests elsewhere may want to start one.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The one headless Chromium of all browser tests."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium
        started = chromium.launch(
            executable_path=find_chromium(chromium.executable_path), args=CHROMIUM_FLAGS
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh page; a request to anywhere but this machine is blocked and fails the test."""
    outside: list[str] = []

    def guard(route: Route, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https"} and parts.hostname not in LOOPBACK:
            outside.append(request.url)
            route.abort()
        else:
            route.continue_()

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.route("**/*", guard)
    yield context.new_page()
    context.close()
    assert not outside, f"the page asked for something outside this machine: {outside}"
