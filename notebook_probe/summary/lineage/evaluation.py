"""Results of evaluations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from notebook_probe.errors import RecordWarning
from notebook_probe.json_numbers import json_value
from notebook_probe.lineage.dataset_graph import DatasetGraph
from notebook_probe.record.format.notes import written_notes
from notebook_probe.summary.lineage.data import data_facts

__all__ = ["eval_lineage", "merged_evaluations"]


def eval_lineage(
    metrics: Mapping[str, Any], data: DatasetGraph | None = None, step: int | None = None
) -> dict[str, Any]:
    """Metrics of an evaluation, and path and size of its data.

    Parameters
    ----------
    metrics : mapping
        Numbers, text and lists and dicts of them. The ``eval_`` that our loop puts before the names
        of an evaluation is left out.
    data : DatasetGraph, optional
    step : int, optional
        Updates that the evaluated state has had.

    Warns
    -----
    RecordWarning
        For a metric that JSON cannot hold; the others are kept.

    Examples
    --------
    >>> eval_lineage({"eval_accuracy": 0.75, "test_loss": 1.5}, step=100)["metrics"]
    {'accuracy': 0.75, 'test_loss': 1.5}
    """
    facts = data_facts(data)
    return {
        "metrics": _kept(metrics),
        "step": step,
        "data_path": facts.path,
        "data_size": facts.size,
    }


def merged_evaluations(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the newest value of every metric; evaluations may be of different data.

    Examples
    --------
    >>> merged_evaluations({"metrics": {"loss": 2}, "step": 1}, {"metrics": {"top5": 1}, "step": 3})
    {'metrics': {'loss': 2, 'top5': 1}, 'step': 3}
    """
    known = before.get("metrics")
    metrics = {**(known if isinstance(known, dict) else {}), **now["metrics"]}
    told = {key: one for key, one in now.items() if one is not None}
    # Fields that an evaluation does not know keep their value.
    return {**now, **before, **told, "metrics": metrics}


def _kept(metrics: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in metrics.items():
        key = str(name).removeprefix("eval_") or str(name)
        told = json_value(value)
        try:
            # Each metric alone, so that one that cannot be stored does not cost the others.
            written_notes("metrics", {key: told})
        except Exception as error:  # whatever a value of the user's does when it is looked at
            text = f"the metric {key!r} is not kept: {error}"
            warnings.warn(text, RecordWarning, stacklevel=3)
        else:
            kept[key] = told
    return kept
