"""Card of one quantity, with all its facts."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from notebook_probe.axis import Image, PerChannel
from notebook_probe.quantities.define.costs import measured_costs
from notebook_probe.quantities.reduce.features import given_by
from notebook_probe.tabular import as_html, html_card, text_card

if TYPE_CHECKING:
    from notebook_probe.quantities.define.quantity import Quantity

__all__ = ["NOT_GIVEN", "html", "text"]

NOT_GIVEN = "not given"
"""Text in the place of a missing source."""


def text(quantity: Quantity) -> str:
    """Format the card for a terminal."""
    return text_card(f"{quantity.name}: {quantity.summary}".rstrip(": "), _facts(quantity))


def html(quantity: Quantity) -> str:
    """Format the card for a notebook."""
    doc = inspect.getdoc(quantity.function) or ""
    title = f"<b>{quantity.name}</b>: {as_html(doc.partition(chr(10) * 2)[0])}"
    return html_card(title, _facts(quantity))


def _facts(quantity: Quantity) -> dict[str, str]:
    """Return the facts of a card; a missing source is stated as missing."""
    explained = quantity.explained
    facts = {
        "formula": _code(explained.formula),
        "answers": quantity.question,
        "how to read it": explained.reading,
        "usual value": "" if quantity.usual is None else f"about ``{quantity.usual:g}``",
        "lies between": _between(quantity.bounds),
        "pitfalls": explained.pitfalls,
        "needs": ", ".join(map(_need, quantity.needs)),
        "units": _code(quantity.units),
        "value": _value(quantity),
        "cost": "; ".join(filter(None, (quantity.cost, _measured(quantity)))),
        "also called": ", ".join(map(_code, quantity.aliases)),
        "source": quantity.source or NOT_GIVEN,
    }
    return {name: text for name, text in facts.items() if text}


def _between(bounds: tuple[float, float] | None) -> str:
    return "" if bounds is None else f"``{bounds[0]:g}`` and ``{bounds[1]:g}``"


def _code(text: str) -> str:
    return f"``{text}``" if text else ""


def _need(need: str) -> str:
    call = given_by(need)
    return _code(need) if call == need else f"{_code(need)} ({_code(call)})"


def _value(quantity: Quantity) -> str:
    axis = quantity.axis
    if axis is None:
        return ""
    if isinstance(axis, PerChannel):
        return "a vector, one number per channel of the module"
    if isinstance(axis, Image):
        return axis.expected
    return f"a vector of {axis.size} along ``{axis.name}``"


def _measured(quantity: Quantity) -> str:
    cost = measured_costs().of_quantity(quantity.name)
    return f"{cost} in which it is due" if cost else ""
