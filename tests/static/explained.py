"""What the built-in quantities say of themselves, and checks that read it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from notebook_probe.quantities import Quantity
from notebook_probe.quantities.define import questions
from notebook_probe.tabular import LINE
from tests.static.offenders import at

SHARES = ("fraction", "share", "accuracy")


def place(quantity: Quantity) -> str:
    """Return where a quantity is defined and its name."""
    _, line = inspect.getsourcelines(quantity.function)
    file = at(Path(inspect.getfile(quantity.function))).rpartition(":")[0]
    return f"{file}:{line}: {quantity.name}"


class Text(HTMLParser):
    """The tags and the readable text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def wrong_cards(quantities: Iterable[Quantity]) -> Iterator[str]:
    """Find cards that are too wide for a terminal, or differ in a notebook."""
    for quantity in quantities:
        card, page = str(quantity), Text(quantity._repr_html_())
        for line in card.splitlines()[1:]:
            if len(line) > LINE:
                yield f"{place(quantity)}: {len(line)} characters, at most {LINE}: {line}"
        for part in (quantity.explained.formula, quantity.question, quantity.units, quantity.cost):
            if part not in page.text:
                yield f"{place(quantity)}: {part!r} is missing from its card in a notebook"
            if " ".join(part.split()) not in " ".join(card.split()):
                yield f"{place(quantity)}: {part!r} is missing from its card as text"


def unexplained(quantities: Iterable[Quantity]) -> Iterator[str]:
    """Find quantities that do not say all there is to know of them."""
    for quantity in quantities:
        said = quantity.explained
        required = {
            "a first line that ends with a full stop": said.summary.endswith("."),
            "a formula in double backticks in the first line": said.formula,
            "a paragraph that says how to read it": said.reading,
            "a section Warnings with the pitfalls": said.pitfalls,
            "a source: a paper, an address or 'definition'": quantity.source,
            "units": quantity.units,
            "a question of quantities.define.questions": quantity.question
            in vars(questions).values(),
        }
        yield from (
            f"{place(quantity)} lacks {what}" for what, is_there in required.items() if not is_there
        )


def unbounded_shares(quantities: Iterable[Quantity]) -> Iterator[str]:
    """Find quantities whose name promises a share and whose bounds are not 0 and 1."""
    for quantity in quantities:
        if quantity.name.endswith(SHARES) and quantity.units == "1" and quantity.bounds != (0, 1):
            yield f"{place(quantity)}: bounds={quantity.bounds}; allowed: (0, 1)"
