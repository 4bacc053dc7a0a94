"""Default columns for a picture of a table."""

from __future__ import annotations

from notebook_probe.lineage.table import LineageTable

__all__ = ["pictured", "result_of"]

SETTINGS = ("config.", "custom.", "train.learning_rate", "train.batch_size", "train.optimizer")
RESULTS = ("eval.", "loss.last")
MOST = 10
MOST_CATEGORIES = 12


def pictured(table: LineageTable) -> list[str]:
    """Return the settings in which runs differ, then results that an axis can show.

    Examples
    --------
    >>> pictured(LineageTable.of([
    ...     {"name": "a", "config.lr": 0.1, "config.seed": 1, "loss.last": 2.0, "eval.top5": 0.5},
    ...     {"name": "b", "config.lr": 0.2, "config.seed": 1, "loss.last": 1.0},
    ... ]))
    ['config.lr', 'loss.last', 'eval.top5']
    """
    there = [one for one in table.shown() if _fits(table, one)]
    evaluated = [one for one in table.columns if one.startswith("eval.") and one not in there]
    settings = [one for one in there if one.startswith(SETTINGS)]
    results = [one for one in (*there, *evaluated) if one.startswith(RESULTS)]
    return [*settings[: max(1, MOST - len(results))], *results[:MOST]]


def result_of(columns: list[str]) -> str:
    """Return the column for the color of the runs: an evaluation, else the last one."""
    evaluated = [one for one in columns if one.startswith("eval.")]
    return evaluated[0] if evaluated else columns[-1] if columns else ""


def _fits(table: LineageTable, column: str) -> bool:
    values = [one for one in table[column] if one is not None]
    if all(isinstance(one, int | float) for one in values):
        return True
    return len({*map(repr, values)}) <= MOST_CATEGORIES and not any(
        isinstance(one, list | dict) for one in values
    )
