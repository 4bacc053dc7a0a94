from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.train import Loop, Trainer

__all__ = ["Collect", "Pairs", "images", "steps_of"]

Pairs = list[tuple[Tensor, Tensor]]


class Small(nn.Module):
    """A convolution and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 2, 3), nn.Linear(2 * 4 * 4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.conv(x).relu().flatten(1))


def images(n: int, size: int = 4, seed: int = 0) -> Pairs:
    generator = torch.Generator().manual_seed(seed)
    return [
        (
            torch.rand(size, 3, 6, 6, generator=generator),
            torch.randint(0, 2, (size,), generator=generator),
        )
        for _ in range(n)
    ]


def a_loop(model: nn.Module | None = None, **options: Any) -> Loop:
    torch.manual_seed(0)
    model = Small() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    return Loop(Trainer(model, nn.functional.cross_entropy, optimizer, **options))


def steps_of(run: nbp.Run, name: str, module: str = "") -> list[int]:
    """The steps at which something is recorded."""
    run.flush()
    steps: list[int] = run.series(module, name).step.values.tolist()
    return steps


Collect = Callable[..., nbp.SummaryCollector]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Collect]:
    """A collector into the test's folder, without a landscape; its own runs are closed."""
    made: list[nbp.SummaryCollector] = []

    def make(**options: Any) -> nbp.SummaryCollector:
        specified = {"collect_landscape": None, **options.pop("collect_specified_data", {})}
        if options.get("keep_default_action", True) is False:
            del specified["collect_landscape"]
        options["collect_specified_data"] = specified
        made.append(nbp.SummaryCollector(str(tmp_path / "summary"), **options))
        return made[-1]

    yield make
    for one in made:
        if one.run is not None:
            one.run.close()
