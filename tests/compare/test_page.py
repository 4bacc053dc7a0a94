"""The code of docs/how_to/comparing.md runs as it is printed, and says what the page says."""

import re
from pathlib import Path

import pytest

from tests.run.programs import Programs

PAGE = (Path(__file__).parents[2] / "docs/how_to/comparing.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)

BEFORE = """
from collections import OrderedDict

import torch
from torch import nn

import notebook_probe as nbp


def train(name, seed, scale=1.0):
    torch.manual_seed(seed)
    layers = OrderedDict(fc1=nn.Linear(4, 16), act=nn.Tanh(), fc2=nn.Linear(16, 1))
    model = nn.Sequential(layers)
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    options = {"store": f"runs/{name}.zarr", "name": name, "config": {"scale": scale}}
    with nbp.watch(model, optimizer, probes=None, **options) as run:
        run.attach("fc*", "grad_norm", "every(1)")
        for step in range(80):
            x = torch.randn(64, 4)
            loss = (model(x) - x.sum(1, keepdim=True)).square().mean() + 1.0
            optimizer.zero_grad()
            (loss * (scale if step >= 40 else 1.0)).backward()
            run.log(loss=loss)
            optimizer.step()


train("digits", 0, scale=8.0)
train("digits-8", 0)
for i in range(4):
    train(f"seed-{i}", i + 1)
"""

AFTER = """
assert differences(run, other).text == "scale 1, here 8"
for whom in (other, seeds):
    found = parting(run, whom, "grad_norm")
    assert {part.module for part in found} == {"fc1", "fc2"}, found
    assert all(abs(part.step - 40) <= 3 for part in found), found
together = parting(seeds[0], seeds[1:], "grad_norm")
assert together.bound == f"×2 or what {len(seeds) - 1} runs differ by"
assert together.text == f"They stay within {together.bound} at all 2 modules"
assert band.n.max() == 4
assert alignment.steps_there([0]).tolist() == [0]
"""


@pytest.mark.slow
def test_the_code_of_the_page_runs_as_it_is_printed(programs: Programs, tmp_path: Path) -> None:
    script = "\n".join([BEFORE, *BLOCKS, AFTER])
    assert programs.run(script, folder=tmp_path) == (0, "")
