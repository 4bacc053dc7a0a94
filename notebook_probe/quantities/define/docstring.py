"""Parts of a quantity's docstring, read by the table, the pages and the panel.

The first line has the formula in double backticks, next to which single symbols do not count; the
paragraphs after it say how to read the value; the numpydoc section ``Warnings`` has the pitfalls.
Other sections are for other readers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Explained", "explained"]

_FORMULA = re.compile(r"``(.+?)``", re.DOTALL)
_SYMBOL = re.compile(r"\w+'?")
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Explained:
    """Parts of a docstring; a missing part is empty."""

    summary: str
    formula: str
    reading: str
    pitfalls: str


def explained(doc: str) -> Explained:
    r"""Take a clean docstring apart.

    Examples
    --------
    >>> doc = "Zeros, ``#(y = 0) / n``.\n\nHalf is usual.\n\nWarnings\n--------\nOne batch."
    >>> found = explained(doc)
    >>> found.summary, found.formula
    ('Zeros, #(y = 0) / n.', '#(y = 0) / n')
    >>> found.reading, found.pitfalls
    ('Half is usual.', 'One batch.')
    """
    body, *rest = _SECTION.split(doc)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    first, _, reading = body.strip().partition("\n\n")
    first = first.replace("\n", " ")
    return Explained(
        summary=first.replace("`", ""),  # shown as plain text
        formula=_formula(_FORMULA.findall(first)),
        reading=reading.strip(),
        pitfalls=sections.get("Warnings", "").strip(),
    )


def _formula(parts: list[str]) -> str:
    """Return the parts as one; symbols that the line only explains are left out."""
    formulas = [part for part in parts if not _SYMBOL.fullmatch(part)]
    return ", ".join(formulas or parts)
