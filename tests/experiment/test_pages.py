"""The code of docs/how_to/experiments.md and docs/coming_from/tfutils.md runs as it is printed."""

import re
from pathlib import Path

import pytest

from tests.run.programs import Programs

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)

AFTER = {
    "how_to/experiments.md": """
assert sorted(ids) == ["w16", "w8"]
assert 0 < training.loop.loop_step <= 20
losses = run.series("", "loss").dropna("step").values
assert len(losses) == 60
assert losses[-1] < losses[0]
assert loop.last_metrics["learning_rate"] == exponential_decay(7, 0.1, 100, 0.95)
assert 0 <= validation.run(model, call=lambda model, batch: model(batch["x"]))["accuracy"] <= 1
assert results["model_0"]["digits"]["loss"] < losses[0]
assert nbp.open_run("home/experiments/digits/first/tests/0/record.zarr").config["step"] == 60
""",
    "coming_from/tfutils.md": """
(units,) = ids.values()
assert [int(one.rpartition(":")[2]) for one in units] == [*range(125, 181, 5)]
assert losses.dropna("step").step.values.tolist() == [*range(180)]
assert accuracies.step.values.tolist() == [0, 50, 100, 150]
assert float(accuracies[-1]) > 0.8
assert run.config["model"]["width"] == 64
assert results["model_0"]["train"]["accuracy"] > 0.7
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("page", [*AFTER])
def test_the_page_runs(programs: Programs, page: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((DOCS / page).read_text("utf-8"))
    assert programs.run("\n".join([*blocks, AFTER[page]]), folder=tmp_path) == (0, "")
