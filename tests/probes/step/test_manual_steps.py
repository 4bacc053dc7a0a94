"""Loops without an optimizer: the step is closed by hand, after the backward."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import Diary, play
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)


def by_hand(model: nn.Module, diary: Diary, run: list[nbp.Run]) -> Sequence[Optimizer]:
    """Gradient descent in four lines; ``run`` is empty for the twin."""
    for step in range(4):
        model.zero_grad()
        for part in batch(step).split([3, 2]):
            loss_of(model(part)).backward()
        with diary.update():
            for each in run:
                each.step()
            with torch.no_grad():
                for value in model.parameters():
                    if value.grad is not None:
                        value.sub_(0.1 * value.grad)
    return []


def test_a_step_closed_by_hand_has_its_weight_gradient_and_calls(watch: Watch) -> None:
    runs: list[nbp.Run] = []

    def begin(model: nn.Module, **options: object) -> nbp.Run:
        runs.append(watch(model, **options))
        return runs[0]

    run, diary = play(mlp, lambda model, diary: by_hand(model, diary, runs), begin)
    for entry in diary.entries:
        entry.owned = set(entry.gradients)
    expected = diary.expected()
    for name, _ in made(mlp).named_parameters():
        assert expected.pop((name, "update_ratio")), "the oracle knows it, the run cannot"
        assert np.isnan(run.data.update_ratio.sel(module=name)).all()
    for (place, quantity), values in expected.items():
        if place in ("", "1") and quantity not in ("input_norm", "output_norm"):
            continue
        if place:
            np.testing.assert_allclose(
                run.series(place, quantity), list(values.values()), rtol=1e-5, err_msg=quantity
            )
    assert run.data.step.values.tolist() == [0, 1, 2, 3]


def test_a_probe_of_the_update_says_why_it_has_no_value_in_a_loop_by_hand(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["update_ratio", "weight_norm"]})
    for step in range(2):
        loss_of(model(batch(step))).backward()
        run.step()
    notes = {probe.quantity: probe.note for probe in run.probes()}
    assert notes["weight_norm"] == ""
    assert "optimizer" in notes["update_ratio"]


def test_a_gradient_that_is_applied_as_it_comes_has_no_step_but_that_by_hand(
    watch: Watch,
) -> None:
    """Fused into the backward: each weight changes as soon as its gradient is there."""

    def trained(model: nn.Module, run: nbp.Run | None) -> list[float]:
        sizes: list[float] = []

        def apply(value: Tensor) -> None:
            if value.grad is not None:
                with torch.no_grad():
                    value.sub_(0.1 * value.grad)
            value.grad = None

        for value in model.parameters():
            value.register_post_accumulate_grad_hook(apply)
        for step in range(3):
            output = model(batch(step))
            sizes.append(float(np.linalg.norm(output.detach().double().numpy())))
            loss_of(output).backward()
            if run is not None:
                run.step()
        return sizes

    alone, watched = made(mlp), made(mlp)
    run = watch(watched, probes={"2": ["output_norm", "grad_norm"]})
    sizes = trained(alone, None)
    trained(watched, run)
    assert differing(everything(alone), everything(watched)) == []
    np.testing.assert_allclose(run.series("2", "output_norm"), sizes, rtol=1e-6)
    assert np.isnan(run.data.grad_norm.sel(module="2")).all(), "none was left to read"


def test_a_loop_without_optimizer_and_without_steps_is_told_what_to_call(watch: Watch) -> None:
    """Nothing says where its steps end, so that nothing is recorded: not without a word."""
    model = made(mlp)
    run = watch(model, probes={"0": ["output_norm", "weight_norm"]})
    for step in range(30):
        loss_of(model(batch(step))).backward()
        with torch.no_grad():
            for value in model.parameters():
                if value.grad is not None:
                    value.sub_(0.1 * value.grad)
                value.grad = None
    assert run.data.sizes["step"] == 0
    assert "run.step()" in str(run.status())
    run.step()
    assert run.data.step.values.tolist() == [0]
    assert "run.step()" not in str(run.status())
