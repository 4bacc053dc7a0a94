"""`nbp.list_quantities()`: the table of what can be measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from html.parser import HTMLParser

import pytest
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.errors import UnknownNameError
from notebook_probe.quantities import quantities as registered
from notebook_probe.quantities.table import COLUMNS, QuantityTable
from notebook_probe.tabular import BACKGROUND


def names(*args: str, **where: str) -> list[str]:
    return [quantity.name for quantity in nbp.list_quantities(*args, **where)]


def test_the_table_has_a_row_for_every_quantity() -> None:
    assert names() == list(registered)


@pytest.mark.parametrize("name", ["presets", "list_quantites", "wach", "Row"])
def test_a_name_that_is_not_there_is_refused_with_those_close_to_it(name: str) -> None:
    close = {
        "presets": "Preset', 'list_presets",
        "list_quantites": "list_quantities",
        "wach": "watch",
        "Row": "PresetRow",
    }
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; close: '{close[name]}'"):
        getattr(nbp, name)


def test_a_search_finds_words_in_any_column_whatever_their_case() -> None:
    assert names("RANKME") == ["effective_rank"]
    assert {"bn_mean_tid", "bn_var_tid"} <= set(names("is it batchnorm?"))
    assert names("rankme overflow") == []


def test_filters_take_names_and_globs() -> None:
    assert all(quantity.cost == "sort" for quantity in nbp.list_quantities(cost="sort"))
    assert "grad_norm" in names(needs="grad")
    assert "output_grad_norm" not in names(needs="grad")
    assert {"output_grad_norm", "grad_norm"} <= set(names(needs="grad*"))
    assert set(names(family="batchnorm")) == {"bn_mean_tid", "bn_var_tid"}
    assert names(family="none") == []


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            lambda: nbp.list_quantities("overfow"),
            "no quantity: none has 'overfow'; close: 'overflow'",
        ),
        (
            lambda: nbp.list_quantities(family="batchnrm"),
            "no family 'batchnrm'; close: 'batchnorm'",
        ),
        (lambda: nbp.list_quantities(needs="outputt"), "no need 'outputt'; close: 'output'"),
        (lambda: nbp.list_quantities(cost="dear"), "no cost class 'dear'; known: 'activations'"),
        (lambda: nbp.list_quantities("qqqq <b>"), "no quantity: none has 'qqqq'"),
        (lambda: nbp.list_quantities("rankme overflow"), "no quantity has all of this"),
    ],
)
def test_a_search_without_a_match_says_what_comes_near(
    table: Callable[[], QuantityTable], told: str
) -> None:
    found = table()
    assert len(found) == 0
    assert told in repr(found)
    assert escape(told) in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_a_quantity_of_one_s_own_is_in_the_table() -> None:
    @nbp.quantity(question="Is the gate open?")
    def test_table_gate(output: Tensor) -> Tensor:
        """Openness, ``mean(y)``, of <b>my</b> gate."""
        return output.mean()

    assert names("gate open") == ["test_table_gate"]
    assert COLUMNS["source"](test_table_gate) == "not given"
    html = nbp.list_quantities("gate open")._repr_html_()
    assert "<b>my</b>" not in html
    assert "&lt;b&gt;my&lt;/b&gt;" in html


def test_a_row_is_found_by_name_and_alias_and_nearly() -> None:
    table = nbp.list_quantities(family="ranks")
    assert table["RankMe"] is table["effective_rank"]
    with pytest.raises(UnknownNameError, match=r"in this table.*effective_rank"):
        table["efective_rank"]


def test_as_text_it_is_aligned_and_says_how_many_there_are() -> None:
    head, *rows, count = repr(nbp.list_quantities(family="batchnorm")).splitlines()
    assert head.split() == ["name", "cost", "needs", "meaning"]
    place = head.index("meaning")
    assert all(row[place - 2 : place] == "  " and row[place] == "D" for row in rows)
    assert count == "(2 quantities)"


def test_one_is_counted_as_one() -> None:
    assert repr(nbp.list_quantities("rankme")).endswith("(1 quantity)")


def test_in_a_notebook_names_are_not_broken_and_colours_are_the_theme_s() -> None:
    html = nbp.list_quantities("rankme")._repr_html_()
    assert 'white-space: nowrap">effective_rank</td>' in html
    assert '<a href="https://arxiv.org/abs/2210.02885">' in html
    assert set(re.findall(r"(?:color|background): ([^;\"]+)", html)) == {BACKGROUND}


class Cells(HTMLParser):
    """How many cells each row has."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append(0)
        if tag in ("td", "th"):
            self.rows[-1] += 1


def test_in_a_notebook_every_row_has_every_column() -> None:
    cells = Cells()
    cells.feed(nbp.list_quantities()._repr_html_())
    assert cells.rows == [len(COLUMNS)] * (1 + len(registered))


def test_it_becomes_a_dataframe() -> None:
    frame = nbp.list_quantities(family="ranks").to_dataframe()
    assert list(frame.columns) == list(COLUMNS)
    assert frame.set_index("name").units["effective_rank"] == "1"
