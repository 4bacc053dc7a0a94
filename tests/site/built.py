"""The built site, as somebody who has its files sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

SITE = Path(__file__).parents[2] / "build" / "site"
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "audio": "src"}
RELS_THAT_LOAD = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload"}


@dataclass
class Read(HTMLParser):
    """What one page says of itself, and what it points to."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    n_titles: int = 0
    n_h1: int = 0
    language: str | None = None
    description: str | None = None
    without_alt: list[str] = field(default_factory=list)
    frames_without_title: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        attrs = {name: value or "" for name, value in given}
        self.ids |= {attrs[name] for name in ("id", "name") if name in attrs}
        self.n_h1 += tag == "h1"
        match tag:
            case "html":
                self.language = attrs.get("lang")
            case "title":
                self.n_titles += 1
            case "meta" if attrs.get("name") == "description":
                self.description = attrs.get("content")
            case "a" if "href" in attrs:
                self.links.append(attrs["href"])
            case "link" if RELS_THAT_LOAD & {*attrs.get("rel", "").split()}:
                self.loaded.append(attrs["href"])
            case "img" if "alt" not in attrs:
                self.without_alt.append(attrs.get("src", ""))
            case "iframe" if not attrs.get("title"):
                self.frames_without_title.append(attrs.get("src", ""))
        if LOADED.get(tag, "") in attrs:
            self.loaded.append(attrs[LOADED[tag]])


@cache
def read(page: Path) -> Read:
    found = Read()
    found.feed(page.read_text("utf-8"))
    return found


@cache
def pages() -> tuple[Path, ...]:
    """Every page, but the panel in its frame, which is no page of the site."""
    assert SITE.exists(), "make docs builds the site"
    return tuple(sorted(page for page in SITE.rglob("*.html") if page.name != "panel.html"))


def name(page: Path) -> str:
    return page.relative_to(SITE).as_posix()
