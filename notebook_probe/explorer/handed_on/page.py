"""A package as one HTML file: it needs no kernel, no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files

__all__ = ["loader", "page"]

POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}' blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""Nothing is fetched. The one script that stands in the page unpacks the panel's code, which it
runs as a blob; the panel places its elements by their style."""

OPEN = """
const el = document.getElementById("panel");
openPackage(document.getElementById("package").textContent, el).catch((error) => {
  document.getElementById("picture").hidden = false;
  el.textContent = `The panel does not open in this browser: ${error.message}`;
});
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ max-width: 1280px; margin: 16px auto; padding: 0 16px; font: 14px/1.5 sans-serif; }}
#picture {{ max-width: 100%; }}
</style>
<noscript><style>#picture {{ display: block !important; }}</style></noscript>
</head>
<body>
<div id="panel"><noscript>{title}: as it was last. With scripts it is a panel.</noscript></div>
{picture}
<script type="text/plain" id="package">{package}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def page(package: str, title: str, png: bytes) -> str:
    """The file's text.

    Parameters
    ----------
    package : str
        Base64, as `Package` has it: no name of the record stands in the page as it is.
    title : str
        Any text; it is escaped.
    png : bytes
        The picture for a reader without scripts; may be empty.
    """
    script = f"{loader()}{OPEN}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return PAGE.format(
        policy=POLICY.format(digest=digest),
        title=html.escape(title),
        package=package,
        picture=_picture(png),
        script=script,
    )


@cache
def loader() -> str:
    """The script that opens a package; ``openPackage(text, element)``."""
    return (files(__package__) / "loader.js").read_text(encoding="utf-8")


def _picture(png: bytes) -> str:
    """Always there, so that the script finds it."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}" if png else "data:,"
    return f'<img id="picture" hidden alt="The panel as it was last" src="{source}">'
