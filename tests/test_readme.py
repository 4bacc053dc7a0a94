"""The README's code runs as it is printed, in the order it is printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)

READERS_OWN = """
from collections import OrderedDict

import torch
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
model = nn.Sequential(OrderedDict(body=body, head=nn.Linear(8, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()
torch.save(model.state_dict(), "step1.pt")
loader = [(torch.randn(16, 4), torch.randint(3, (16,))) for _ in range(5)]
"""
"""What the README takes from its reader: a model, the parts of its loop, the usual import."""

FIRST_RESULT = """
assert run.data.sizes["step"] == len(loader)
assert set(run.data.module.values) >= {"body.0", "body.1", "head"}
"""


@pytest.mark.slow
def test_every_block_of_the_readme_runs_in_a_fresh_process(tmp_path: Path) -> None:
    script = tmp_path / "readme.py"
    first, *others = BLOCKS
    script.write_text("\n".join([READERS_OWN, first, FIRST_RESULT, *others]), "utf-8")

    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.glob("runs/*"))) == 1
