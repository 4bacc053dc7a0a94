"""A package as one HTML file: it needs no kernel, no network and no other file."""

from __future__ import annotations

import base64
import hashlib
import html
import uuid
from functools import cache
from importlib.resources import files

from notebook_probe.explorer import assets

__all__ = ["fragment", "loader", "page", "waiting"]

POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}' blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""Policy of the saved page: it fetches nothing.

The one script in the page unpacks the panel's code and runs it as a blob; the panel places its
elements by their style.
"""

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
<div id="panel"><noscript>{title}: the last picture. With scripts it is a panel.</noscript></div>
{picture}
<script type="text/plain" id="package">{package}</script>
<script type="module">{script}</script>
</body>
</html>
"""


FRAGMENT = """<div class="nbp-handed-on" id="{name}" style="min-height: 1px"></div>
<script type="module">
{loader}
const el = document.getElementById("{name}");
const picture = el.closest(".jp-OutputArea-child, .output_area")?.previousElementSibling;
const widget = picture?.previousElementSibling;
const hide = (one) => (one.style.display = "none");
const tidy = () => widget.textContent.includes("model not found") && hide(widget);
if (widget) {{
  new MutationObserver(tidy).observe(widget, {{ childList: true, subtree: true }});
  tidy();
}}
const watcher = new IntersectionObserver(async (entries) => {{
  if (!entries.at(-1).isIntersecting || globalThis.notebookProbeLive?.has("{widget}")) return;
  watcher.disconnect();
  await openPackage("{package}", el);
  if (picture?.querySelector("img")) hide(picture);
}}, {{ rootMargin: "1000px" }}); // before it is seen
watcher.observe(el);
</script>
"""
"""Opened when visible, unless the panel itself has been alive in this page. Above it are the
picture, and the widget, which a front end may no longer find."""


WAITING = """\
<p class="nbp-handed-on">The panel of <b>{title}</b> is back when the running cell ends. Its \
kernel answers nothing before; training continues, and is recorded.</p>
"""


def fragment(package: str, widget: str) -> str:
    """Return the panel as an output of a notebook, for readers that run scripts.

    Parameters
    ----------
    package : str
        See `page`.
    widget : str
        Id of the panel's widget.
    """
    name = f"nbp-{uuid.uuid4().hex}"
    return FRAGMENT.format(name=name, loader=loader(), widget=widget, package=package)


def waiting(title: str) -> str:
    """Return the text below a panel that cannot load before the running cell ends.

    As an output of the notebook, it is hidden while the panel exists, and shown when the page is
    loaded again meanwhile.

    Parameters
    ----------
    title : str
        Any text; it is escaped.
    """
    return WAITING.format(title=html.escape(title))


def page(package: str, title: str, png: bytes) -> str:
    """Return the file's text.

    Parameters
    ----------
    package : str
        Base64 text from `Package`: no name of the record is in the page unencoded.
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
    """Return the script that opens a package; ``openPackage(text, element)``."""
    source = files(assets.__package__) / "js" / "link" / "saved" / "loader.js"
    return source.read_text(encoding="utf-8").replace("export async", "async")


def _picture(png: bytes) -> str:
    """Return the picture's element; an empty one is included too, for the script."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}" if png else "data:,"
    return f'<img id="picture" hidden alt="The last picture of the panel" src="{source}">'
