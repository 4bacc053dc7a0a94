"""What mkdocs is told besides mkdocs.yml: pages outside docs/, notebooks, and how links go.

The site is docs/ laid over the root of the checkout: a link is followed there, and then leaves
``docs/`` out. So one text is read on the site and where the files lie. mkdocs loads this file as a
hook, by its path; it imports nothing of the project.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = {
    "overview.md": "README.md",  # that name would be the first page, which is another
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}
FILES = {"panel.html": "build/panel.html", "LICENSE": "LICENSE"}
NOTEBOOKS = {
    f"broken/{path.stem}.md": path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "notebooks" / "broken").glob("*.ipynb"))
}
"""Shown as pages: their words and code, and the picture that the contact sheet has."""
SOURCES = PAGES | NOTEBOOKS
ON_SITE = {path: uri for uri, path in (SOURCES | FILES).items()}
ON_SITE["notebooks/broken"] = "broken/index.md"
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", flags=re.DOTALL | re.MULTILINE)


def on_config(config: Any) -> Any:
    """Name the pages of a folder where the nav names the folder, by their titles."""
    config.nav = [_unfolded(entry, Path(config.docs_dir)) for entry in config.nav]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages at the root, the notebooks, and the panel that was made before."""
    for uri, path in (PAGES | FILES | {one: one for one in _notebooks()}).items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    for uri, path in NOTEBOOKS.items():
        files.append(File.generated(config, uri, content=_page_of(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Change the links of a page from the checkout to the site, but in code."""
    uri = page.file.src_uri
    parts = FENCE.split(markdown)
    return "".join(part if number % 2 else _linked(part, uri) for number, part in enumerate(parts))


def _notebooks() -> list[str]:
    found = sorted((ROOT / "notebooks").rglob("[!.]*.ipynb"))
    return [path.relative_to(ROOT).as_posix() for path in found]


def _page_of(notebook: Path) -> str:
    """A notebook without outputs as a page, below its title the picture of its end."""
    title, *others = json.loads(notebook.read_text("utf-8"))["cells"]
    heading, sentence = [line.strip() for line in title["source"] if line.strip()][:2]
    words = "".join(title["source"])
    picture = f"![Broken and healthy](../../docs/broken/{notebook.stem}.png)"
    there = f'<a href="../../notebooks/broken/{notebook.name}" download>the notebook</a>'
    below = f"Run {there} yourself: this page leaves out its outputs, except the plot at its end."
    return "\n\n".join(
        [
            f"---\ntitle: {json.dumps(heading[2:])}\ndescription: {json.dumps(sentence)}\n---",
            *(words, picture, below),
            *map(_block, others),
        ]
    )


def _block(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    return f"```python\n{text}\n```" if cell["cell_type"] == "code" else text


def _unfolded(entry: Any, docs: Path) -> Any:
    """An entry of the nav; in place of ``folder/`` the pages in it, but its first."""
    if isinstance(entry, dict):
        return {title: _unfolded(inside, docs) for title, inside in entry.items()}
    if isinstance(entry, list):
        inside = [_unfolded(each, docs) for each in entry]
        return [page for each in inside for page in (each if isinstance(each, list) else [each])]
    if entry.endswith("/"):
        written = {page.relative_to(docs).as_posix() for page in (docs / entry).glob("*.md")}
        made = {uri for uri in NOTEBOOKS if uri.startswith(entry)}
        return sorted((written | made) - {f"{entry}index.md"})
    return entry


def _linked(text: str, uri: str) -> str:
    """The text with links of the site, in place of those that the checkout has there."""
    here = posixpath.dirname(SOURCES.get(uri, f"docs/{uri}"))

    def on_site(found: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(here, found[2]))
        there = ON_SITE.get(there, there).removeprefix("docs/")
        return f"{found[1]}{os.path.relpath(there, posixpath.dirname(uri) or '.')}{found[3] or ''})"

    return LINK.sub(on_site, text)
