"""Marks on a run: tags, a note, and whether it is archived."""

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
        """Return the marks with this note, replacing the one before.

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

    def put_aside(self, archived: bool) -> Marks:
        """Return the marks with this archived flag."""
        return replace(self, archived=bool(archived))

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"tags": [*self.tags], "note": self.note, "archived": self.archived}

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
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return cls()
        return cls(tuple(tags), note if isinstance(note, str) else "", archived is True)


def _tag(tag: object) -> str:
    if isinstance(tag, str) and tag.strip() and len(tag) <= LONGEST_TAG and tag.isprintable():
        return tag
    raise ValueError(f"tag={tag!r}"[:160] + f"; a line of at most {LONGEST_TAG} characters")
