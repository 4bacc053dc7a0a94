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
"""Opened when it is seen, and not where the panel itself has been alive in this page. What stands
above it is the picture, and the widget, which a front end may not find any more."""


WAITING = """\
<p class="nbp-handed-on">The panel of <b>{title}</b> is back when the running cell ends. Its \
kernel answers nothing before; what is trained goes on, and is recorded.</p>
"""


def fragment(package: str, widget: str) -> str:
    """The panel as an output of a notebook, for readers that run scripts.

    Parameters
    ----------
    package : str
        As in `page`.
    widget : str
        Id of the panel's widget.
    """
    name = f"nbp-{uuid.uuid4().hex}"
    return FRAGMENT.format(name=name, loader=loader(), widget=widget, package=package)


def waiting(title: str) -> str:
    """What stands below a panel that cannot be asked for before the running cell ends.

    As an output of the notebook: hidden while the panel is there, and read by who loads the page
    again meanwhile.

    Parameters
    ----------
    title : str
        Any text; it is escaped.
    """
    return WAITING.format(title=html.escape(title))


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
    source = files(assets.__package__) / "js" / "link" / "saved" / "loader.js"
    return source.read_text(encoding="utf-8").replace("export async", "async")


def _picture(png: bytes) -> str:
    """Always there, so that the script finds it."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}" if png else "data:,"
    return f'<img id="picture" hidden alt="The panel as it was last" src="{source}">'
