"""YAML as tools write it for plain settings: mappings, lists and scalars, and no tags.

A full YAML reader is no dependency of the package, and one that follows tags can run code. Values
beyond this subset are left out, with a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from notebook_probe.old_runs.points import Points

__all__ = ["parse_yaml", "read_yaml"]

MOST_BYTES = 1 << 20
DEEPEST = 32
_INT = re.compile(r"[-+]?\d{1,300}")
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
    ".nan": "nan",
    ".inf": "inf",
    "-.inf": "-inf",
    "{}": {},
    "[]": [],
}
BEYOND = ("!", "&", "*", "|", ">", "{", "[", "%", "@", "`")
"""First characters of values that are beyond the subset."""


class _Line(NamedTuple):
    indent: int
    text: str


def read_yaml(path: Path, points: Points) -> dict[str, Any]:
    """Return the settings in a file; parts that are beyond the subset are left out."""
    if path.stat().st_size > MOST_BYTES:
        points.remarks.append(f"{path.name} is not read: it is larger than {MOST_BYTES >> 20} MiB")
        return {}
    found, left_out = parse_yaml(path.read_bytes().decode("utf-8", errors="replace"))
    if left_out:
        names = ", ".join(left_out[:4])
        points.remarks.append(f"{path.name} is read without {names}: only plain values are")
    return found


def parse_yaml(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return a mapping, and the names of the entries that are left out.

    Examples
    --------
    >>> lines = ["lr: 0.1", "model:", "  sizes:", "  - 3", "fn: !!python/name:os.system ''"]
    >>> parse_yaml(chr(10).join(lines))
    ({'lr': 0.1, 'model': {'sizes': [3]}}, ['fn'])
    """
    lines = [
        _Line(len(line) - len(line.lstrip(" ")), line.strip())
        for line in text.splitlines()
        if line.strip() and not line.lstrip().startswith("#") and line.strip() != "---"
    ]
    parser = _YamlLines(lines)
    return parser.mapping(0, ""), parser.left_out


class _YamlLines:
    """A place in the lines, which only moves on: each line is looked at once."""

    def __init__(self, lines: list[_Line]) -> None:
        self._lines, self._at = lines, 0
        self.left_out: list[str] = []

    def mapping(self, indent: int, above: str, depth: int = 0) -> dict[str, Any]:
        """Return the mapping whose entries have this indent."""
        found: dict[str, Any] = {}
        while (line := self._line()) is not None and line.indent >= indent:
            entry = _entry(line.text)
            if line.indent > indent or entry is None:
                if line.indent == indent and line.text.startswith("- "):
                    break
                self._leave_out(above or line.text[:40], line.indent)
                continue
            self._at += 1
            key, value = entry
            name = f"{above}.{key}" if above else key
            if value.startswith(BEYOND) and value not in WORDS:
                self.left_out.append(name)
                self._skip(indent)
            elif value:
                found[key] = _scalar(value)
                self._skip(indent, name)
            else:
                found[key] = self._below(indent, name, depth)
        return found

    def _below(self, indent: int, name: str, depth: int) -> Any:
        """Return the value of an entry on the lines below it."""
        line = self._line()
        if depth >= DEEPEST:
            self._skip(indent, name)
        elif line is not None and line.indent >= indent and line.text.startswith("- "):
            return [*self._items(line.indent, name)]
        elif line is not None and line.indent > indent:
            return self.mapping(line.indent, name, depth + 1)
        return None

    def _items(self, indent: int, name: str) -> Iterator[Any]:
        while (line := self._line()) is not None and line.indent == indent:
            if not line.text.startswith("- "):
                return
            self._at += 1
            text = line.text[2:].strip()
            if _entry(text) is not None or text.startswith((*BEYOND, "- ")):
                self.left_out.append(name)
                self._skip(indent)
            else:
                yield _scalar(text)

    def _line(self) -> _Line | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _skip(self, indent: int, name: str = "") -> None:
        """Leave out the lines that belong to the entry above."""
        while (line := self._line()) is not None and line.indent > indent:
            if name:
                self.left_out.append(name)
                name = ""
            self._at += 1

    def _leave_out(self, name: str, indent: int) -> None:
        self.left_out.append(name)
        self._at += 1
        self._skip(indent)


def _entry(text: str) -> tuple[str, str] | None:
    """Return the key and the value of a line; None if it is no entry of a mapping.

    Examples
    --------
    >>> _entry("lr: 0.1"), _entry("'a b':"), _entry("- 3"), _entry("text")
    (('lr', '0.1'), ('a b', ''), None, None)
    """
    key, colon, value = f"{text} ".partition(": ")
    if not colon or not key.strip() or key.startswith(("- ", "#", "?", *BEYOND)):
        return None
    return _unquoted(key.strip()), value.strip()


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"') and text[-1:] == text[:1] else text


def _scalar(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return _unquoted(text)
    text = text.partition(" #")[0].strip()
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
