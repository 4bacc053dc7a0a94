"""Marks on a run: a name, tags, a note, and whether it is archived."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["MOST_CHARACTERS", "Marks"]

MOST_CHARACTERS = 10_000
"""Maximum characters of a note."""
MOST_TAGS = 1000
LONGEST_TAG = 100


@dataclass(frozen=True, slots=True)
class Marks:
    """Marks on one run; frozen.

    Examples
    --------
    >>> Marks().tagged(["good", "paper"]).untagged(["good"]).plain()
    {'tags': ['paper'], 'note': '', 'archived': False}
    """

    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False
    name: str = ""
    """Replaces the title of the record in tables; empty to keep it."""

    def tagged(self, tags: Iterable[str]) -> Marks:
        """Return the marks with these tags, too.

        Raises
        ------
        ValueError
            One is no word or two, or there are too many.
        """
        new = [_tag(one) for one in tags]
        whole = tuple(dict.fromkeys([*self.tags, *new]))
        if len(whole) > MOST_TAGS:
            raise ValueError(f"{len(whole)} tags; at most {MOST_TAGS}")
        return replace(self, tags=whole)

    def untagged(self, tags: Iterable[str]) -> Marks:
        """Return the marks without these tags; missing ones are ignored."""
        gone = {*tags}
        return replace(self, tags=tuple(one for one in self.tags if one not in gone))

    def noted(self, note: str) -> Marks:
        """Return the marks with this note, replacing the previous one.

        Raises
        ------
        ValueError
            It is no text, or too long.
        """
        if not isinstance(note, str) or len(note) > MOST_CHARACTERS:
            raise ValueError(
                f"note={note!r}"[:80] + f"; text of at most {MOST_CHARACTERS} characters is kept"
            )
        return replace(self, note=note)

    def named(self, name: str) -> Marks:
        """Return the marks with this name; with an empty one tables show the title again.

        Raises
        ------
        ValueError
            It is no line of text, or too long.
        """
        if not isinstance(name, str) or len(name) > LONGEST_TAG or not name.isprintable():
            raise ValueError(f"name={name!r}"[:160] + f"; a line of at most {LONGEST_TAG}")
        return replace(self, name=name.strip())

    def put_aside(self, archived: bool) -> Marks:
        """Return the marks with this archived flag."""
        return replace(self, archived=bool(archived))

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        named = {"name": self.name} if self.name else {}
        return {"tags": [*self.tags], "note": self.note, "archived": self.archived, **named}

    def text(self) -> bytes:
        """Return the metadata of the zarr group with these marks."""
        group = {"zarr_format": 3, "node_type": "group", "attributes": self.plain()}
        return json.dumps(group).encode()

    @classmethod
    def parsed(cls, content: bytes | None) -> Marks:
        """Parse the result of `text`; damaged or foreign content counts as empty."""
        try:
            found = json.loads(content or b"{}")["attributes"]
            tags = [one for one in found.get("tags", []) if isinstance(one, str)]
            note, archived = found.get("note", ""), found.get("archived", False)
            name = found.get("name", "")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return cls()
        texts = [one if isinstance(one, str) else "" for one in (note, name)]
        return cls(tuple(tags), texts[0], archived is True, texts[1][:LONGEST_TAG])


def _tag(tag: object) -> str:
    if isinstance(tag, str) and tag.strip() and len(tag) <= LONGEST_TAG and tag.isprintable():
        return tag
    raise ValueError(f"tag={tag!r}"[:160] + f"; a line of at most {LONGEST_TAG} characters")
