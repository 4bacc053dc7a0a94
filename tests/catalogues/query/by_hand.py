"""Every operator, with a value and whether it meets the condition, by hand; for every database."""

from __future__ import annotations

from typing import Any

from notebook_probe.catalogues.index.changes import Put
from notebook_probe.catalogues.index.index import Index
from notebook_probe.catalogues.query import condition

__all__ = ["CASES", "check_answers"]

NAN, INF = float("nan"), float("inf")
CASES: list[tuple[str, Any, Any]] = [
    ("lr < 0.1", 0.01, True),
    ("lr < 0.1", 0.1, False),
    ("lr <= 1e-1", 0.1, True),
    ("lr > -.5", -0.25, True),
    ("lr >= 1.", 1, True),
    ("lr == 1", 1.0, True),
    ("lr == 1", True, False),
    ("lr == true", True, True),
    ("lr == True", 1, False),
    ("lr == '1'", 1, False),
    ("lr != 1", "1", True),
    ("lr != 1", 1, False),
    ("lr < 1", "0", False),
    ("lr > 'a'", "b", True),
    ("lr > 'a'", 2, False),
    ("lr < inf", 1e308, True),
    ("lr > -inf", -INF, False),
    ("lr == inf", INF, True),
    ("lr < 1", NAN, False),
    ("lr >= 1", NAN, False),
    ("lr != 1", NAN, True),
    ("lr is nan", NAN, True),
    ("lr is nan", 1.0, False),
    ("lr is not nan", 1.0, True),
    ("lr is missing", 1.0, False),
    ("lr is missing", None, True),
    ("lr == none", None, True),
    ("lr != None", 0, True),
    ("lr < 1", None, False),
    ("lr == 1", None, False),
    ("lr != 1", None, True),
    ("not lr < 1", None, True),
    ("lr in [1, 'a']", "a", True),
    ("lr in (1, 'a',)", 2, False),
    ("lr not in [1]", None, True),
    ("lr in []", 1, False),
    ("lr has 'good'", ["bad", "good"], True),
    ("lr has 'goo'", ["bad", "good"], False),
    ("lr has 'goo'", "so good", True),
    ("lr not has 'x'", "so good", True),
    ("lr has 1", [1.0], True),
    ("lr has 1", [True], False),
    ("lr has 1", "1", False),
    ("lr == [4, [8]]", [4, [8]], True),
    ("lr == [4, 8]", [4, 9], False),
    ("lr == 9007199254740993", 9007199254740993, True),
    ("lr < 9007199254740993", 9007199254740992, True),
]


def check_answers(index: Index) -> None:
    """An index finds just the rows that are meant, beside others that are not."""
    rows = [{"run": str(n), "run_id": str(n), "lr": value} for n, (_, value, _) in enumerate(CASES)]
    index.put(Put("here", str(row["run"]), "mark", False, row) for row in rows)
    for n, (where, _, wanted) in enumerate(CASES):
        asked = condition(where)
        found = {row["run"] for _, row in index.rows(asked) if asked.matches(row)}
        assert (str(n) in found) is wanted, where
        assert found == {row["run"] for row in rows if asked.matches(row)}, where
