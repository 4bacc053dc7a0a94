"""Attention whose heads lie on different processes: each records its own, and asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import notebook_probe as nbp
from notebook_probe.quantities.reduce.attention_scores import GivenScores
from tests.distributed.pair import Pair
from tests.quantities.attention_oracle import Scores, wide

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

AXES = {"heads": 1, "keys": 3}


def table() -> Tensor:
    return 4 * torch.randn(2, 4, 3, 6, generator=torch.Generator().manual_seed(0))


class Spread(nn.Module):
    """Scores that lie on two processes, each with a part along one axis."""

    def __init__(self, axis: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.mesh, self.axis = init_device_mesh("cpu", (2,)), axis

    def forward(self, scores: Tensor) -> Tensor:
        spread = distribute_tensor(scores, self.mesh, [Shard(self.axis)])
        shares: Any = spread.softmax(-1)
        total: Tensor = self.scale * shares.full_tensor().square().sum()
        return total


def watched(rank: int, folder: Path, axis: int) -> tuple[list[float], str, int]:
    torch.manual_seed(0)
    model = Spread(axis)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probes: dict[str, Any] = {"": ["attn_head_entropy"]} if rank == 0 else {}
    with nbp.watch(model, store=folder / f"{rank}.zarr", probes=probes) as run:
        model(table()).backward()
        optimizer.step()
        run.controls.settle()
        status = run.status()
    [*probe] = status.probes
    found = run.series("", "attn_head_entropy").values[0] if probe and probe[0].n_values else []
    return [*map(float, found)], "".join(one.note for one in probe), len(status.errors)


@pytest.mark.slow
@pytest.mark.parametrize("spread", AXES)
def test_each_process_has_the_heads_that_lie_there(spread: str, pair: Pair, tmp_path: Path) -> None:
    (found, note, n_errors), (other, _, _) = pair.run(watched, tmp_path, AXES[spread])
    assert (other, n_errors) == ([], 0)
    if spread == "keys":
        assert "spread by" in note
        return
    scores = GivenScores.of(table()[:, :2]).scores
    expected = Scores(wide(scores), torch.ones(scores.shape, dtype=torch.bool).numpy())
    assert found == pytest.approx(expected.entropies().tolist(), rel=1e-5)
