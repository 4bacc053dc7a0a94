"""What came of evaluations."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from notebook_probe.errors import RecordWarning
from notebook_probe.lineage.dataset_graph import DataPart, DatasetGraph
from notebook_probe.record.format.notes import written_notes
from notebook_probe.summary.lineage.evaluation import eval_lineage, merged_evaluations


def test_metrics_are_kept_with_path_and_size_of_their_data() -> None:
    data = DataPart("dataset", "dataset", "Digits", 1000, {"root": "/data/digits"})
    graph = DatasetGraph(DataPart("", "loader", "DataLoader", 8, {}, (data,)))
    assert eval_lineage({"eval_accuracy": 0.5, "test_loss": 2, "eval_": 1}, graph, 300) == {
        "metrics": {"accuracy": 0.5, "test_loss": 2, "eval_": 1},
        "step": 300,
        "data_path": "/data/digits",
        "data_size": 1000,
    }
    assert eval_lineage({}) == {"metrics": {}, "step": None, "data_path": None, "data_size": None}


def test_what_json_cannot_hold_is_left_out_with_a_warning_and_the_others_stay() -> None:
    metrics: dict[str, Any] = {
        "a": torch.ones(3),
        "b": object(),
        "c": {1: 2},
        "ok": [1, {"x": None}],
    }
    with pytest.warns(RecordWarning) as told:
        found = eval_lineage(metrics)
    assert found["metrics"] == {"ok": [1, {"x": None}]}
    assert [str(one.message).split(":")[0] for one in told] == [
        f"the metric '{name}' is not kept" for name in "abc"
    ]


def test_numbers_of_every_library_are_kept_and_nan_is_text() -> None:
    found = eval_lineage({"a": np.float32(0.5), "b": torch.tensor(2), "c": float("nan")})
    written = json.loads(written_notes("lineage", found))
    assert written["metrics"] == {"a": 0.5, "b": 2, "c": "nan"}


def test_the_newest_of_every_metric_stays() -> None:
    first, second = eval_lineage({"loss": 2.0, "top5": 0.5}, step=10), eval_lineage({"loss": 1.0})
    assert merged_evaluations({}, first) == first
    assert merged_evaluations(first, second) == {
        **first,
        "metrics": {"loss": 1.0, "top5": 0.5},
    }
