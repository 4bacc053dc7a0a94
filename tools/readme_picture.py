"""Renew docs/explorer.png: the Explorer in JupyterLab while the quickstart's cell trains.

Run it from the checkout: ``python -m tools.readme_picture``; it takes about a minute.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, ViewportSize, sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium
from tests.browser.explorer_page import Panel
from tests.browser.lab import ROOT, LabServer, Notebook
from tests.browser.test_explorer import BEFORE, PANEL, TRAINING, quickstart_code

PICTURE = ROOT / "docs" / "explorer.png"
SHARPNESS = 1.5  # device pixels per pixel
SIZE = (1632, 1060)  # leaves the panel about 1200 pixels beside JupyterLab's file browser
ATTACH_AT, SHOWN_AT = 300, 1150  # the learning rate drops at step 920
SERIES = ("conv1", "head")


def main() -> None:
    """Train, click, and take the picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = LabServer(Path(folder))
        browser = playwright.chromium.launch(
            executable_path=find_chromium(playwright), args=CHROMIUM_FLAGS
        )
        try:
            take_picture(browser, server)
        finally:
            browser.close()
            server.end_kernels()
            server.close()
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1000:.0f} kB")


def take_picture(browser: Browser, server: LabServer) -> None:
    """Do in the quickstart what its text proposes, and photograph the panel."""
    viewport: ViewportSize = {"width": SIZE[0], "height": SIZE[1]}
    page = browser.new_page(viewport=viewport, device_scale_factor=SHARPNESS)
    notebook = Notebook(page, server, server.add(quickstart_code()))
    notebook.run(*BEFORE, PANEL)
    panel = Panel(notebook, PANEL)
    notebook.start(TRAINING)
    panel.show()
    panel.root.locator(".nbp-head [data-quantity='update_ratio']").click()
    for module in SERIES:
        panel.add_series(module, "update_ratio")
    panel.wait_step(ATTACH_AT)
    panel.attach("bn2", "input_std", "every(10)")
    panel.wait_attached()
    panel.wait_step(SHOWN_AT)
    panel.heat.hover(0.3, 0.35)
    PICTURE.parent.mkdir(exist_ok=True)
    page.screenshot(path=PICTURE, clip=frame(notebook, panel))


def frame(notebook: Notebook, panel: Panel) -> FloatRect:
    """The panel, and above it the code of its cell."""
    code = notebook.locate(PANEL).locator(".jp-InputArea").bounding_box()
    box = panel.root.bounding_box()
    assert code is not None
    assert box is not None
    top, bottom = code["y"] - 8, box["y"] + box["height"] + 10
    return {"x": code["x"], "y": top, "width": code["width"] + 10, "height": bottom - top}


if __name__ == "__main__":
    main()
