"""Mixed precision: layers compute in 16 bits, the record is right to the format's precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import AdamW, Optimizer

from tests.models import ConvNet, Encoder, floats, loss_of, made, mlp, words
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_layers_are_recorded_as_they_computed(
    dtype: torch.dtype, cached: bool, watch: Watch
) -> None:
    """The outputs are 16 bits wide, the weights and their gradients are not."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = AdamW(model.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype, cache_enabled=cached):
                output = model(100 * batch(step))
                assert output.dtype is dtype
            loss_of(output.float()).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert np.isfinite(run.data.output_norm.sel(module=["0", "1", "2"])).all()


EVERYTHING = ["input_norm", "input_std", "output_mean", "output_norm", "output_grad_norm",
              "zero_fraction", "weight_norm", "grad_norm", "update_ratio"]  # fmt: skip


@pytest.mark.parametrize("build", [ConvNet, Encoder])
def test_autocast_leaves_every_bit_where_layers_work_in_place_and_draw_numbers(
    build: type[nn.Module], watch: Watch
) -> None:
    """BatchNorm in 32 bits between convolutions in 16, dropout, attention."""

    def trained(model: nn.Module) -> dict[str, bytes]:
        optimizer = AdamW(model.parameters(), lr=0.01)
        torch.manual_seed(7)
        for step in range(3):
            given = words(step) if build is Encoder else floats(4, 1, 6, 6)(step)
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(model(given))
            loss.backward()
            optimizer.step()
        return everything(model, [optimizer])

    alone, model = made(build), made(build)
    run = watch(model, probes={"*": EVERYTHING})
    assert differing(trained(alone), trained(model)) == []
    assert not run.status().errors
    assert np.isfinite(run.data.output_norm.sel(module="head")).all()
