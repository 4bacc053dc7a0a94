"""Print the path of a Chromium that the browser tests can drive, installing one where we may.

Looked for in this order: ``NOTEBOOK_PROBE_BROWSER``, Playwright's own, one of the system's; on
Debian as root it is then installed with apt. Otherwise this fails and says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

# The headless shell first: it has no windows of its own to draw, which saves a third of the time,
# and it is what Playwright itself installs for headless tests.
HEADLESS_SHELL = "chromium-headless-shell"
SYSTEM_BROWSERS = (
    HEADLESS_SHELL,
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
MAC_CHROME = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# Without a font package Chromium draws no letters.
DEBIAN_PACKAGES = (HEADLESS_SHELL, "fonts-dejavu-core")
ADVICE = (
    "The browser tests need Chromium or Chrome, and none was found. Either run\n"
    "    .venv/bin/playwright install chromium\n"
    "or install Chromium or Chrome the way your system does,\n"
    "or name one: NOTEBOOK_PROBE_BROWSER=/path/to/chrome make test"
)


def playwrights_own() -> str | None:
    """Path of the browser that `playwright install` put there, if it did."""
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def systems() -> str | None:
    """Path of a browser installed on this machine."""
    return next(filter(None, map(shutil.which, (*SYSTEM_BROWSERS, MAC_CHROME))), None)


def may_install() -> bool:
    """Whether this is a Debian or one of its kin, and we are root there."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0


def install() -> None:
    """Install Debian's browser; apt's output goes to stderr, because stdout carries the path."""
    quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *DEBIAN_PACKAGES]):
        subprocess.run(["apt-get", "-qq", *command], check=False, stdout=sys.stderr, env=quietly)


def main() -> int:
    """Print the path and return 0, or say what to install and return 1."""
    browser = os.environ.get("NOTEBOOK_PROBE_BROWSER") or playwrights_own() or systems()
    if browser is None and may_install():
        print(f"no browser found; installing Debian's {HEADLESS_SHELL}", file=sys.stderr)
        install()
        browser = systems()
    if browser is None:
        print(ADVICE, file=sys.stderr)
        return 1
    print(browser)
    return 0


if __name__ == "__main__":
    sys.exit(main())
