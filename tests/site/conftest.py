"""The built site on the loopback, and a headless Chromium that may ask for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, Request, Response

from tests.browser.conftest import browser
from tests.site.built import SITE

__all__ = ["browser"]

Visit = Callable[[str], Page]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="package")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def outside(url: str, address: str) -> list[str]:
    return [] if url.startswith((address, "data:", "blob:")) else [f"outside: {url}"]


def failed(asked: Request) -> list[str]:
    """What could not be had; a page that is left gives up what it was asking for."""
    return [] if asked.failure == "net::ERR_ABORTED" else [f"{asked.failure}: {asked.url}"]


def refused(got: Response) -> list[str]:
    """An answer that is none; "not modified" is one, where a page is visited again."""
    return [f"{got.status}: {got.url}"] if got.status >= 400 else []


@contextmanager
def visiting(browser: Browser, address: str, width: int, scheme: str) -> Iterator[Visit]:
    """A window of that width and colours; whatever goes wrong in it fails at the end."""
    wrong: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: wrong.extend(outside(asked.url, address)))
    page.on("response", lambda got: wrong.extend(refused(got)))
    page.on("requestfailed", lambda asked: wrong.extend(failed(asked)))

    def visit(path: str) -> Page:
        page.goto(f"{address}/{path}", wait_until="load")
        return page

    yield visit
    context.close()
    assert wrong == []


@pytest.fixture
def window(browser: Browser, address: str) -> Callable[[int, str], object]:
    """Opens windows: ``with window(320, "dark") as visit: visit("quantities/")``."""
    return partial(visiting, browser, address)
