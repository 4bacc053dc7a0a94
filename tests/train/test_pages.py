"""The code of docs/how_to/training.md and docs/coming_from/gomlx.md runs as it is printed."""

import re
from pathlib import Path

import pytest

from tests.run.programs import Programs

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)

BEFORE = """
import torch
from torch import nn

import notebook_probe as nbp

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
loader = batches = [(torch.randn(4, 3), torch.randint(0, 2, (4,))) for _ in range(30)]
held_out = loader[:2]


def accuracy(prediction, label):
    return (prediction.argmax(1) == label).float()


def loss_fn(labels, predictions):
    return nn.functional.cross_entropy(predictions[0], labels[0])
"""

AFTER = {
    "how_to/training.md": """
assert run.series("", "test_loss").step.values.tolist() == [20, 40, 60, 80, 100, 120, 140]
assert [event.kind for event in run.events if event.kind == "set"] == ["set"]
assert "averaged_loss" in loop.last_metrics
run.close()
""",
    "coming_from/gomlx.md": """
assert loop.loop_step == 30
assert collector.get_all_series_names() == []
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("page", AFTER)
def test_the_code_of_a_page_runs_as_it_is_printed(
    page: str, programs: Programs, tmp_path: Path
) -> None:
    of_these_pages = BLOCK.findall((DOCS / "how_to" / "model.md").read_text("utf-8"))
    before = of_these_pages if page.startswith("how_to/") else [BEFORE]
    blocks = BLOCK.findall((DOCS / page).read_text("utf-8"))
    script = "\n".join([*before, *blocks, AFTER[page]])
    assert programs.run(script, folder=tmp_path) == (0, "")
