"""`nbp.quantities()`: the table of what can be measured."""

from __future__ import annotations

import re
import subprocess
import sys
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
    return [quantity.name for quantity in nbp.quantities(*args, **where)]


def test_the_table_has_a_row_for_every_quantity() -> None:
    assert names() == list(registered)


def test_the_first_access_and_later_ones_are_the_same_package() -> None:
    script = """
import notebook_probe as nbp
first = nbp.quantities
assert first is nbp.quantities and first("bn_mean")["MeanTID"].name == "bn_mean_tid"
import notebook_probe.quantities as package
assert package is first
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_search_finds_words_in_any_column_whatever_their_case() -> None:
    assert names("RANKME") == ["effective_rank"]
    assert {"bn_mean_tid", "bn_var_tid"} <= set(names("is it batchnorm?"))
    assert names("rankme overflow") == []


def test_filters_take_names_and_globs() -> None:
    assert all(quantity.cost == "sort" for quantity in nbp.quantities(cost="sort"))
    assert "grad_norm" in names(needs="grad")
    assert "output_grad_norm" not in names(needs="grad")
    assert {"output_grad_norm", "grad_norm"} <= set(names(needs="grad*"))
    assert set(names(family="batchnorm")) == {"bn_mean_tid", "bn_var_tid"}
    assert names(family="none") == []


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (lambda: nbp.quantities("overfow"), "no quantity: none has 'overfow'; close: 'overflow'"),
        (lambda: nbp.quantities(family="batchnrm"), "no family 'batchnrm'; close: 'batchnorm'"),
        (lambda: nbp.quantities(needs="outputt"), "no need 'outputt'; close: 'output'"),
        (lambda: nbp.quantities(cost="dear"), "no cost class 'dear'; known: 'activations'"),
        (lambda: nbp.quantities("qqqq <b>"), "no quantity: none has 'qqqq'"),
        (lambda: nbp.quantities("rankme overflow"), "no quantity has all of this"),
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
    html = nbp.quantities("gate open")._repr_html_()
    assert "<b>my</b>" not in html
    assert "&lt;b&gt;my&lt;/b&gt;" in html


def test_a_row_is_found_by_name_and_alias_and_nearly() -> None:
    table = nbp.quantities(family="ranks")
    assert table["RankMe"] is table["effective_rank"]
    with pytest.raises(UnknownNameError, match=r"in this table.*effective_rank"):
        table["efective_rank"]


def test_as_text_it_is_aligned_and_says_how_many_there_are() -> None:
    head, *rows, count = repr(nbp.quantities(family="batchnorm")).splitlines()
    assert head.split() == ["name", "cost", "needs", "meaning"]
    place = head.index("meaning")
    assert all(row[place - 2 : place] == "  " and row[place] == "D" for row in rows)
    assert count == "(2 quantities)"


def test_one_is_counted_as_one() -> None:
    assert repr(nbp.quantities("rankme")).endswith("(1 quantity)")


def test_in_a_notebook_names_are_not_broken_and_colours_are_the_theme_s() -> None:
    html = nbp.quantities("rankme")._repr_html_()
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
    cells.feed(nbp.quantities()._repr_html_())
    assert cells.rows == [len(COLUMNS)] * (1 + len(registered))


def test_it_becomes_a_dataframe() -> None:
    frame = nbp.quantities(family="ranks").to_dataframe()
    assert list(frame.columns) == list(COLUMNS)
    assert frame.set_index("name").units["effective_rank"] == "1"
