"""The picture of a training's data says what each part is, has, and is to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch.utils.data import DataLoader, Subset, TensorDataset

import notebook_probe as nbp
from notebook_probe import figures
from notebook_probe.errors import NotLookedError
from notebook_probe.lineage.dataset_graph import DATASET_GRAPH, DataPart, DatasetGraph
from notebook_probe.summary.dataset_graph import describe
from tests.models import made, mlp


@pytest.fixture(scope="module")
def graph() -> DatasetGraph:
    whole = TensorDataset(torch.ones(1300, 2), torch.zeros(1300))
    return describe(DataLoader(Subset(whole, range(1200)), batch_size=8))


def texts(graph: DatasetGraph) -> list[str]:
    return [text.get_text() for text in figures.dataset_graph(graph).axes[0].texts]


def test_a_box_says_its_class_its_length_and_its_settings(graph: DatasetGraph) -> None:
    heading, *shown = texts(graph)
    assert heading == "DataLoader: 5 parts"
    assert {"DataLoader  150", "Subset  1\u2009200", "TensorDataset  1\u2009300"} <= {*shown}
    assert "indices=range(0, 1200)" in shown
    assert shown.count("dataset") == 2
    assert "batch_sampler" in shown


def test_samples_flow_downwards_into_the_loader(graph: DatasetGraph) -> None:
    axes = figures.dataset_graph(graph).axes[0]
    y = {text.get_text().split("  ")[0]: text.get_position()[1] for text in axes.texts}
    assert y["TensorDataset"] > y["Subset"] > y["DataLoader"]
    assert y["SequentialSampler"] > y["BatchSampler"] > y["DataLoader"]
    patches = axes.patches
    assert sum(isinstance(one, FancyBboxPatch) for one in patches) == 5
    assert sum(isinstance(one, FancyArrowPatch) for one in patches) == 4


def test_it_is_drawn_of_a_run_and_of_a_record(graph: DatasetGraph, tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.note(DATASET_GRAPH, "trained on a loader", graph=graph.plain())
        of_run = figures.dataset_graph(run)
    of_record = figures.dataset_graph(nbp.open_run(tmp_path / "run.zarr"))
    assert of_run.get_size_inches().tolist() == of_record.get_size_inches().tolist()


def test_a_record_without_one_says_so(tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "run.zarr") as run:
        run.log(loss=1.0)
    with pytest.raises(NotLookedError, match="no dataset graph is recorded"):
        figures.dataset_graph(nbp.open_run(tmp_path / "run.zarr"))


def test_one_part_and_two_hundred_and_hostile_names_are_drawn() -> None:
    assert texts(describe([1, 2]))[:2] == ["list: 1 part", "list  2"]
    odd = DataPart("$x_", "dataset", "$\\frac" * 40, None, {"$": "\n" * 9 + "<b>" * 99})
    many = DatasetGraph(DataPart("", "loader", "Loader", None, {}, (odd,) * 199))
    figure = figures.dataset_graph(many)
    figure.canvas.draw()
    assert texts(many)[0] == "Loader: 200 parts"
