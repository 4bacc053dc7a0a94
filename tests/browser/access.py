"""Findings of axe-core, which checks a page for people who use a keyboard or a screen reader."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

__all__ = ["findings"]

SERIOUS = ("serious", "critical")
LOAD = "(source) => { (0, eval)(source); }"
RUN = """async (scope) => {
  if (!window.axe) return null;
  // With forced colors the system paints; what axe-core reads of them are the author's colors.
  const contrast = !matchMedia("(forced-colors: active)").matches;
  const rules = { "color-contrast": { enabled: contrast } };
  const { violations } = await axe.run(scope, { resultTypes: ["violations"], rules });
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((node) => ({
    id, impact, target: node.target.flat().join(" "), html: node.html.slice(0, 160),
    why: [...node.any, ...node.all, ...node.none].map(({ message }) => message).join("; "),
  })));
}"""


def findings(page: Page, scope: str, impacts: tuple[str, ...] = SERIOUS) -> list[str]:
    """Return what axe-core finds of these impacts, a line each."""
    found: list[dict[str, Any]] | None = page.evaluate(RUN, scope)
    if found is None:  # half a megabyte, which a page needs once
        source = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
        page.evaluate(LOAD, source)
        found = page.evaluate(RUN, scope)
    assert found is not None
    return [
        f"{one['impact']} {one['id']} at {one['target']}: {one['why']} ({one['html']})"
        for one in found
        if one["impact"] in impacts
    ]
