"""The code of the page for Taiyi runs as it is printed, and of the reductions in that on probes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)

READERS_OWN = """
from collections import OrderedDict

import torch
from torch import nn

import notebook_probe as nbp

torch.manual_seed(0)
body = [nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten()]
model = nn.Sequential(OrderedDict(body=nn.Sequential(*body), head=nn.Linear(96, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()
loader = [(torch.randn(16, 3, 6, 6), torch.randint(3, (16,))) for _ in range(6)]
activations, module = torch.randn(16, 96), model.head


class Logger:
    rows = {}

    def log(self, values, step=None):
        self.rows.setdefault(step, {}).update(values)


logger = Logger()
"""
"""What the page takes from its reader."""

RESULT = """
assert [*output["body.1"]["MeanTID"]] == [0, 5]
assert [*output["body.0"]["WeightNorm"]] == [0, 2, 4]
assert set(logger.rows[2]) == {
    "loss", "body.1_InputSndNorm", "body.0_OutputGradSndNorm", "body.0_WeightNorm",
    "head_LinearDeadNeuronNum",
}
"""

SHARED = """
run = monitor.run
run.attach("head", [first_share, gap, largest_share, smallest_share, spectral_gap], "every(1)")
for x, y in loader:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
assert 0 < float(run.series("head", "smallest_share")[-1]) < 0.34
assert float(run.series("head", "largest_share")[-1]) > 0.33
torch.testing.assert_close(
    run.series("head", "gap").values, run.series("head", "spectral_gap").values
)
assert len(eigenvalues) == 96 and run.status().errors == ()
"""


@pytest.mark.slow
def test_the_pages_code_runs_as_it_is_printed(tmp_path: Path) -> None:
    begin, plain, own = BLOCK.findall(
        (ROOT / "docs" / "coming_from" / "taiyi.md").read_text("utf-8")
    )
    probes = (ROOT / "docs" / "explanation" / "probes.md").read_text("utf-8")
    _, _, section = probes.partition("## What quantities share\n")
    shared = BLOCK.findall(section.partition("\n## ")[0])
    script = tmp_path / "page.py"
    script.write_text("\n".join([READERS_OWN, begin, RESULT, plain, own, *shared, SHARED]), "utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stderr
