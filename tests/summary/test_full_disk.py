"""A disk that fills up while a training is collected: it ends as without a collector."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.write.test_full_disk import ALONE, can_mount

PROGRAM = """
import subprocess, sys, warnings
from pathlib import Path
import torch
from torch import nn
import notebook_probe as nbp
from notebook_probe.train import Loop, Trainer

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], check=True)
images = torch.randn(8, 16, 64, generator=torch.Generator().manual_seed(1))
data = [(image, torch.arange(16) % 10) for image in images]


def trained(collector):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loop = Loop(Trainer(model, nn.functional.cross_entropy, optimizer))
    if collector is not None:
        loop.add(collector)
    loop.run_epochs(data, 4)
    return loop, model.state_dict()


_, alone = trained(None)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    loop, collected = trained(nbp.SummaryCollector(str(disk / "summary"), collect_freq=1))
    assert loop.loop_step == 32
    assert all(torch.equal(alone[name], collected[name]) for name in alone)
    try:
        loop.run.close()
    except nbp.RecordWriteError as error:
        print("kept" if "are kept in" in str(error) else error)
texts = [str(one.message) for one in said]
for words in ("snapshot", "files of the loss landscape", "rows in memory cannot be written"):
    print(words, sum(words in text for text in texts))
assert len(texts) == len(set(texts)), texts
"""


@pytest.mark.stories
@pytest.mark.skipif(not can_mount(), reason="no mounting without privileges here")
def test_training_goes_on_and_each_thing_is_told_of_once(tmp_path: Path) -> None:
    program = [*ALONE, sys.executable, "-c", PROGRAM, str(tmp_path)]
    home = {**os.environ, "HOME": str(tmp_path.with_name(f"{tmp_path.name}-home"))}
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env=home)
    _, *said = done.stdout.splitlines()
    told = ("snapshot 1", "files of the loss landscape 1", "rows in memory cannot be written 1")
    assert said == ["kept", *told], done.stderr
