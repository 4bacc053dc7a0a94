"""Table of all quantities: their names, what they mean and what they cost."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from html import escape
from typing import Any

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.quantities.define.card import NOT_GIVEN
from notebook_probe.quantities.define.decorator import quantities
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.tabular import as_html, html_table, text_table

__all__ = ["COLUMNS", "QuantityTable", "built_in", "list_quantities"]

COLUMNS: dict[str, Callable[[Quantity], str]] = {
    "name": lambda q: q.name,
    "meaning": lambda q: q.summary,
    "formula": lambda q: q.explained.formula,
    "question": lambda q: q.question,
    "needs": lambda q: ", ".join(q.needs),
    "units": lambda q: q.units,
    "cost": lambda q: q.cost,
    "family": lambda q: q.family,
    "aliases": lambda q: ", ".join(q.aliases),
    "source": lambda q: q.source or NOT_GIVEN,
}
"""Columns by name: the function that formats a quantity's cell."""

PRINTED = ("name", "cost", "needs", "meaning")
"""The columns of the table as text, which has to fit a line."""

WIDE = {"meaning": "20em", "formula": "14em", "question": "14em", "source": "14em"}
"""The least width of columns with sentences in a notebook."""


@dataclass(frozen=True, repr=False)
class QuantityTable:
    """Quantities, shown as a table; a sequence, and by name a mapping."""

    rows: tuple[Quantity, ...]
    hint: str = ""
    """Reason why there are none, as text."""

    def __iter__(self) -> Iterator[Quantity]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Quantity:
        """Return the quantity of this name or alias, if it is in the table."""
        for quantity in self.rows:
            if name in (quantity.name, *quantity.aliases):
                return quantity
        known = [known for quantity in self.rows for known in (quantity.name, *quantity.aliases)]
        raise UnknownNameError(f"no quantity {name!r} in this table; {near(name, known)}")

    def _ipython_key_completions_(self) -> list[str]:
        return [quantity.name for quantity in self.rows]

    def to_dataframe(self) -> Any:
        """Return a pandas.DataFrame with a column for each of `COLUMNS`."""
        import pandas

        return pandas.DataFrame(self._cells(tuple(COLUMNS)), columns=list(COLUMNS))

    def _cells(self, columns: Sequence[str]) -> list[list[str]]:
        return [[COLUMNS[column](quantity) for column in columns] for quantity in self.rows]

    def _count(self) -> str:
        return "1 quantity" if len(self) == 1 else f"{len(self)} quantities"

    def __repr__(self) -> str:
        if not self.rows:
            return self.hint
        return f"{text_table([PRINTED, *self._cells(PRINTED)])}\n({self._count()})"

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{escape(self.hint)}</p>"
        table = html_table(
            {column: WIDE.get(column, "") for column in COLUMNS},
            ([_html(column, quantity) for column in COLUMNS] for quantity in self.rows),
        )
        return f"{table}<p>{self._count()}</p>"


def _html(column: str, quantity: Quantity) -> str:
    """Format a cell: several names with a line each, an address as a link."""
    text = COLUMNS[column](quantity)
    return as_html(text) if column in WIDE else "<br>".join(map(escape, text.split(", ")))


def list_quantities(
    search: str = "", *, family: str = "*", needs: str = "*", cost: str = "*"
) -> QuantityTable:
    """Return a table of every quantity that can be measured, yours included.

    Parameters
    ----------
    search : str
        Words that a row must hold, in any column; upper and lower case are the same.
    family : str
        Name or glob of the family, such as ``"spectra"``.
    needs : str
        Name or glob of a tensor it is made of, such as ``"grad"`` or ``"*put"``.
    cost : str
        Cost class: ``"scalar"`` is available anyway; ``"parameters"`` and ``"activations"`` are one
        pass over them; ``"sort"``, ``"factorisation"``, ``"forward"`` and ``"backward"`` are more.

    Returns
    -------
    QuantityTable
        Shown as a table in a notebook and as text elsewhere; iterate it, or take one by its name.

    Examples
    --------
    >>> [quantity.name for quantity in list_quantities("batchnorm", family="batchnorm")]
    ['bn_mean_tid', 'bn_var_tid']
    >>> list_quantities()["RankMe"].question
    'Do representations collapse? Is the layer too wide?'
    """
    quantities.load()
    every = quantities.values()
    words = search.casefold().split()
    found = tuple(
        quantity
        for quantity in every
        if fnmatchcase(quantity.family, family)
        and any(fnmatchcase(need, needs) for need in quantity.needs)
        and fnmatchcase(quantity.cost, cost)
        and all(word in _text(quantity) for word in words)
    )
    return QuantityTable(found, "" if found else _why_none(every, words, family, needs, cost))


def _why_none(
    every: Sequence[Quantity], words: Sequence[str], family: str, needs: str, cost: str
) -> str:
    """Explain which of the requests no quantity meets, with similar names."""
    known: dict[str, tuple[str, list[str]]] = {
        "family": (family, [quantity.family for quantity in every]),
        "need": (needs, [need for quantity in every for need in quantity.needs]),
        "cost class": (cost, [quantity.cost for quantity in every]),
    }
    for kind, (glob, names) in known.items():
        if not any(fnmatchcase(name, glob) for name in names):
            return f"no quantity: no {kind} {glob!r}; {near(glob, sorted({*names}))}"
    texts = [_text(quantity) for quantity in every]
    vocabulary = sorted({word for text in texts for word in re.findall(r"\w{3,}", text)})
    for word in words:
        if not any(word in text for text in texts):
            close = get_close_matches(word, vocabulary, n=4)
            close_words = "; close: " + ", ".join(map(repr, close)) if close else ""
            return f"no quantity: none has {word!r}{close_words}"
    return "no quantity has all of this; ask for less of it"


def built_in() -> tuple[Quantity, ...]:
    """Return the quantities of this package, which have a name in one of its files."""
    return tuple(
        quantity
        for quantity in quantities.values()
        # Code that `exec` runs may name no module.
        if (quantity.function.__module__ or "").startswith("notebook_probe.")
        and _at_home(quantity) is quantity
    )


def _at_home(quantity: Quantity) -> object:
    """Return the object that a quantity's file has under its name; a doctest's has none."""
    home, name = sys.modules[quantity.function.__module__], quantity.function.__qualname__
    return getattr(home, name, None)


def _text(quantity: Quantity) -> str:
    return "\n".join(column(quantity) for column in COLUMNS.values()).casefold()
