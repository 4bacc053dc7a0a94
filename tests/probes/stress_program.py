"""Three trainings in three threads that change places as often as Python can; run by name.

``python -X faulthandler -m tests.probes.stress_program SECONDS FOLDER``

Two of them are watched. Each watched run must have recorded exactly what a run of the same model
records that trains alone, and every model must have its twin's weights.
"""

from __future__ import annotations

import copy
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.optim import Adam

import notebook_probe as nbp
from tests.models import floats

N_STEPS = 40
SIZES = 8, 16, 12
SCALES = 1.0, 1000.0, -1e6
"""So that no loss of one training can pass for another's."""
QUANTITIES = ["grad_norm", "output_norm", "output_grad_norm", "update_norm"]


class Recorded(NamedTuple):
    """What came of a training."""

    losses: npt.NDArray[np.float32]
    values: npt.NDArray[np.float32]
    weights: list[torch.Tensor]


def build(which: int) -> nn.Module:
    torch.manual_seed(which)
    size = SIZES[which]
    return nn.Sequential(nn.Linear(4, size), nn.Tanh(), nn.Linear(size, size), nn.Linear(size, 2))


def steps(model: nn.Module, which: int) -> Iterator[None]:
    optimizer, batch = Adam(model.parameters(), lr=0.01), floats(5, 4)
    for step in range(N_STEPS):
        loss = SCALES[which] * model(batch(100 * which + step)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def train(model: nn.Module, which: int, store: Path | None) -> Recorded:
    """Train it, watched if there is a store."""
    if store is None:
        for _ in steps(model, which):
            pass
        nothing = np.zeros(0, np.float32)
        return Recorded(nothing, nothing, [one.detach() for one in model.parameters()])
    probes = {"": ["loss_ema"], "*": QUANTITIES}
    with nbp.watch(model, store=store, probes=probes, budget=None, overwrite=True) as run:
        for _ in steps(model, which):
            pass
        run.controls.settle()
        losses = run.series("", "backward_loss").values
        values = np.stack([run.data[name].values for name in QUANTITIES])
    return Recorded(losses, values, [one.detach() for one in model.parameters()])


def check(found: Recorded, wanted: Recorded) -> None:
    np.testing.assert_array_equal(found.losses, wanted.losses)
    np.testing.assert_array_equal(found.values, wanted.values)
    for one, other in zip(found.weights, wanted.weights, strict=True):
        assert torch.equal(one, other)


def main(seconds: float, folder: Path) -> None:
    torch.set_num_threads(1)
    models = [build(which) for which in range(3)]
    stores = [folder / "first.zarr", folder / "second.zarr", None]
    wanted = [train(copy.deepcopy(m), i, stores[i]) for i, m in enumerate(models)]
    assert [len(one.losses) for one in wanted] == [N_STEPS, N_STEPS, 0]
    errors: list[BaseException] = []
    n_rounds = [0, 0, 0]
    until = time.monotonic() + seconds

    def repeat(which: int) -> None:
        try:
            while not errors and (time.monotonic() < until or not n_rounds[which]):
                check(train(copy.deepcopy(models[which]), which, stores[which]), wanted[which])
                n_rounds[which] += 1
        except BaseException as error:
            errors.append(error)

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=repeat, args=(which,)) for which in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    print(f"{n_rounds} trainings of {N_STEPS} steps")


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]))
