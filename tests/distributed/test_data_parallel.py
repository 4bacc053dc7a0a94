"""nn.DataParallel without devices calls its module: the record is that of the module."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import nn
from torch.optim import Adam, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, mlp
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.run.conftest import Watch, watch

__all__ = ["watch"]

batch = floats(5, 4)


@pytest.mark.skipif(torch.cuda.is_available(), reason="DataParallel would use the devices")
@pytest.mark.parametrize("wrapper_watched", [True, False])
def test_a_data_parallel_model_without_devices_passes_through(
    wrapper_watched: bool, watch: Watch
) -> None:
    def begin(model: nn.Module, **options: object) -> nbp.Run:
        return watch(nn.DataParallel(model) if wrapper_watched else model, **options)

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        parallel = nn.DataParallel(model)
        optimizer = Adam(parallel.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(parallel(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, begin)
    check(run, diary)
    assert [row.name for row in run.modules] == ["(root)", "0", "1", "2"]
