"""A record whose trainer was killed, while workers that it forked live on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from notebook_probe.record import open_record
from tests.record.build import new_writer

TRAINER = """
import multiprocessing, sys, time
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset
import notebook_probe as nbp
from tests.models import made, mlp, sgd, train_step

class Slow(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, place):
        if place > 8:
            time.sleep(3600)
        return torch.randn(4)

if __name__ == "__main__":
    model = made(mlp)
    run = nbp.watch(model, store=Path(sys.argv[1]))
    optimizer = sgd(model)
    loader = DataLoader(Slow(), batch_size=2, num_workers=1, multiprocessing_context="fork")
    for step, batch in enumerate(loader):
        train_step(model, optimizer, batch)
        if step == 2:
            run.flush()
            (worker,) = multiprocessing.active_children()
            print(worker.pid, flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_an_orphaned_loader_worker_does_not_keep_the_record_locked(tmp_path: Path) -> None:
    trainer = subprocess.Popen(
        [sys.executable, "-c", TRAINER, tmp_path / "0.zarr"], stdout=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    said = [trainer.stdout.readline() for _ in range(2)]
    worker = int(said[1])
    try:
        trainer.kill()
        trainer.wait(60)
        os.kill(worker, 0)  # it is still there
        with pytest.raises(FileExistsError, match="another model"):  # and not: locked
            new_writer(tmp_path / "0.zarr")
        assert open_record(tmp_path / "0.zarr").data.sizes["step"] >= 2
    finally:
        os.kill(worker, signal.SIGKILL)
        trainer.stdout.close()
