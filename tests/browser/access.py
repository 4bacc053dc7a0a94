"""Findings of axe-core, which checks a page for people who use a keyboard or a screen reader."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

__all__ = ["findings"]

SERIOUS = ("serious", "critical")
RUN = """async ([source, scope]) => {
  if (!window.axe) (0, eval)(source);
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
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    found: list[dict[str, Any]] = page.evaluate(RUN, [source, scope])
    return [
        f"{one['impact']} {one['id']} at {one['target']}: {one['why']} ({one['html']})"
        for one in found
        if one["impact"] in impacts
    ]
