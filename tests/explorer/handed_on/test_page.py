"""The file: whole, closed to the network, and untouched by the names in it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from notebook_probe.explorer.handed_on.page import page

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


class Found(HTMLParser):
    """Tags with their attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)


def parsed(text: str) -> Found:
    found = Found()
    found.feed(text)
    return found


def test_a_hostile_title_is_text() -> None:
    plain, hostile = parsed(page("QUJD", "run", b"")), parsed(page("QUJD", HOSTILE, b""))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert hostile.scripts == plain.scripts


def test_the_policy_allows_the_one_script_and_no_request() -> None:
    found = parsed(page("QUJD", "run", b"png"))
    policy = next(a["content"] for tag, a in found.tags if tag == "meta" and "http-equiv" in a)
    package, script = found.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert package == "QUJD"
    assert policy is not None
    assert f"script-src 'sha256-{digest}' blob:" in policy
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy, "none, by default"


def test_nothing_outside_is_named() -> None:
    text = page("QUJD", "run", b"png")
    assert not re.findall(r"https?:|//[a-z]", text)
    addresses = [a.get("src") or a.get("href") for _, a in parsed(text).tags]
    assert [one for one in addresses if one] == ["data:image/png;base64,cG5n"]
