"""Models that people use: each has a graph, of which none fails, and nothing of them changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from benchmarks.graphs.looked_at import looked_at
from benchmarks.graphs.models import MODELS
from notebook_probe.graph import Graph

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore"),  # of theirs, as they are built
]

OF_DATA = {"wav2vec 2.0"}
"""Whose forward goes where random numbers say."""


def test_there_are_more_than_fifty_of_them() -> None:
    assert len(MODELS) > 50


@pytest.mark.parametrize(("library", "name"), MODELS)
def test_a_model_has_a_graph_and_stays_as_it_was(library: str, name: str) -> None:
    found = looked_at(MODELS[library, name])
    graph = found.graph
    assert found.changed == []
    assert graph.how == ("called" if name in OF_DATA else "exported"), graph.why
    assert Graph.from_json(graph.to_json()) == graph
    assert all(start < end for start, end in graph.edges)
    fed = {end for _, end in graph.edges}
    assert all(at in fed for at, node in enumerate(graph.nodes) if node.kind == "output")


def test_an_onnx_file_computes_what_the_network_does(tmp_path: Path) -> None:
    import onnx
    from onnx.reference import ReferenceEvaluator

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)
    )
    batch = torch.randn(3, 4)
    model(batch)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with nbp.watch(model, store=tmp_path / "run.zarr") as run:
        file = run.to_onnx(tmp_path / "network.onnx", batch)
    assert [*tmp_path.glob("network*")] == [file]
    written = onnx.load(file)
    onnx.checker.check_model(written)
    (given,) = ReferenceEvaluator(written).run(None, {written.graph.input[0].name: batch.numpy()})
    np.testing.assert_allclose(given, model.eval()(batch).detach().numpy(), atol=1e-6)
    model.train()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
