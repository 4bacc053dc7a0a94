"""The panel on the kernel and widgets that Colab runs on; of its front end nothing is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from tests.kernel.environments import COLAB, interpreter
from tests.kernel.front_end import FrontEnd, Message

pytestmark = pytest.mark.kernels

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def colab() -> Iterator[FrontEnd]:
    end = FrontEnd(interpreter(COLAB))
    yield end
    end.close()


def recorded(folder: Path) -> Path:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, store=folder / "first.zarr"):
        for _ in range(3):
            model(torch.ones(4, 2)).square().mean().backward()
            optimizer.step()
    return folder / "first.zarr"


def shown_widget(colab: FrontEnd, cell: str) -> str:
    """The id of the widget that a cell shows, which is that of its comm."""
    shown = [said["content"]["data"] for said in colab.about(cell, "display_data")]
    [model_id] = [data[VIEW]["model_id"] for data in shown if VIEW in data]
    return str(model_id)


def test_the_panel_opens_and_answers_between_cells(colab: FrontEnd, tmp_path: Path) -> None:
    cell = colab.execute(
        f"import notebook_probe as nbp; nbp.open_run({str(recorded(tmp_path))!r}).explore()"
    )
    assert colab.finish(cell)["status"] == "ok", colab.finish(cell)
    panel = shown_widget(colab, cell)
    colab.custom(panel, {"v": 1, "type": "hello", "view": "x"})

    def is_model(said: Message) -> bool:
        content = said["content"]["data"].get("content", {})
        return content.get("type") == "model"

    colab.until(lambda: [*filter(is_model, colab.from_comm(panel))], "the modules")
