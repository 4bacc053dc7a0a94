"""Clicks, keys and seconds of what a person does in the panel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page

__all__ = ["Errands"]

COUNT = """() => {
  window.acts = { clicks: 0, keys: 0 };
  const count = (name) => (event) => (acts[name] += event.isTrusted);
  document.addEventListener("click", count("clicks"), true);
  document.addEventListener("keydown", count("keys"), true);
}"""


class Errands:
    """Count what a person does for each errand, and how long it takes."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.done: dict[str, tuple[int, int, float]] = {}
        page.evaluate(COUNT)

    @contextmanager
    def errand(self, name: str) -> Iterator[None]:
        self._page.evaluate("Object.assign(acts, { clicks: 0, keys: 0 })")
        begun_s = time.monotonic()
        yield
        took_s = time.monotonic() - begun_s
        acts = self._page.evaluate("acts")
        self.done[name] = acts["clicks"], acts["keys"], took_s

    def told(self) -> str:
        lines = [
            f"{name:<55} {clicks} clicks, {keys} keys, {took_s:4.1f} s"
            for name, (clicks, keys, took_s) in self.done.items()
        ]
        return "\n".join(lines)
