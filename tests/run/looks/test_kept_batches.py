"""Samples of a batch are kept where its loss jumps or is NaN and at a pause, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.alerts import Rules
from notebook_probe.record.views.looks import Look
from notebook_probe.run.facts import nonfinite
from notebook_probe.run.looks import kept_batches, sample_copies
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S, held_at

SPOILED_AT, N_STEPS = 40, 60
Batch = tuple[Tensor, Tensor]


class Mixed(nn.Module):
    """Takes its inputs by position and by keyword, under names of tensors of a module."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 4)

    def forward(self, x: Tensor, weight: Tensor, scale: float = 1.0) -> Tensor:
        out: Tensor = self.linear(x.flatten(1)) * weight * scale
        return out


def classifier() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 4))


def batch_of(step: int) -> Batch:
    """Learnable labels; those of the spoiled step are wrong, and its images 30 times as large."""
    x = torch.randn(12, 1, 4, 4, generator=torch.Generator().manual_seed(step))
    y = x.flatten(1)[:, :4].argmax(1)
    return (30 * x, (y + 1) % 4) if step == SPOILED_AT else (x, y)


def train(
    run: nbp.Run,
    model: nn.Module,
    *,
    batch: Callable[[int], Batch] = batch_of,
    call: Callable[[Tensor], Tensor] | None = None,
    logged: Callable[[Tensor], Any] = lambda loss: loss,
    between: Callable[[Batch], object] = lambda batch: None,
) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(N_STEPS):
        x, y = batch(step)
        loss = F.cross_entropy((call or model)(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=logged(loss))
        if step % 10 == 9:
            run.flush()  # the usual loss is known from what is recorded
        between((x, y))
    run.flush()


def only(run: nbp.Run | nbp.OpenedRun) -> Look:
    (look,) = run.looks
    return look


def test_a_batch_at_which_the_loss_jumps_is_kept_with_its_targets(watch: Watch) -> None:
    model = classifier()
    run = watch(model, probes=[])
    train(run, model)
    (alert,) = [one for one in run.alerts if one.rule == "loss_spike"]
    look = only(run)
    assert (look.module, look.step, alert.step) == ("(root)", SPOILED_AT, SPOILED_AT)
    assert look.why == f"loss_spike: {alert.sentence}"
    x, y = batch_of(SPOILED_AT)
    np.testing.assert_array_equal(look.data.input, x[:8].numpy())
    np.testing.assert_array_equal(look.data.target, y.numpy())
    facts = look.data.input.attrs
    assert tuple(facts["shape"]) == (12, 1, 4, 4)
    assert facts["maximum"] == x.max().item()
    run.close()
    assert only(nbp.open_run(run.location)).why == look.why


def test_a_healthy_training_copies_no_batch_at_all(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[int] = []

    def copy(self: kept_batches.KeptBatches, step: int, *given: object) -> None:
        copies.append(step)

    monkeypatch.setattr(kept_batches.KeptBatches, "copy", copy)
    model = classifier()
    run = watch(model, probes=[])
    healthy = batch_of(0)
    train(run, model, batch=lambda step: healthy)
    assert copies == []
    assert run.looks == []


def test_a_high_loss_that_no_rule_reports_leaves_nothing(watch: Watch) -> None:
    model = classifier()
    run = watch(model, probes=[])
    x, y = batch_of(0)
    train(run, model, batch=lambda step: (x, (y + 1) % 4) if step == SPOILED_AT else (x, y))
    assert not run.alerts
    assert run.looks == []


def test_a_batch_whose_loss_is_nan_is_kept(watch: Watch) -> None:
    model = classifier()
    run = watch(model, probes=[])

    def batch(step: int) -> Batch:
        x, y = batch_of(step)
        x[3, 0, 2, 2] = torch.nan if step == SPOILED_AT else x[3, 0, 2, 2]
        return x, y

    train(run, model, batch=batch)
    look = next(one for one in run.looks if one.step == SPOILED_AT)
    assert look.why.startswith("nonfinite_batch: ")
    assert look.data.input.attrs["nonfinite"] == 1
    assert np.isnan(look.data.input.values[3, 0, 2, 2])


def test_arguments_are_named_as_the_model_names_them(watch: Watch) -> None:
    torch.manual_seed(0)
    model, weight = Mixed(), torch.ones(4)
    run = watch(model, probes=[])
    train(run, model, call=lambda x: model(x, weight=weight, scale=1.0))
    assert [*only(run).data] == ["input", "weight_", "target"]


def test_watching_for_jumps_changes_no_weight(watch: Watch) -> None:
    plain, watched = classifier(), classifier()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    for step in range(N_STEPS):
        x, y = batch_of(step)
        optimizer.zero_grad()
        F.cross_entropy(plain(x), y).backward()
        optimizer.step()
    run = watch(watched, probes=[])
    train(run, watched)
    assert len(run.looks) == 1
    for mine, its in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(mine, its)


def test_a_logged_loss_that_is_not_that_of_backward_ends_copying(watch: Watch) -> None:
    """Rules judge the logged number, so that what backward is called on says nothing about it."""
    model = classifier()
    run = watch(model, probes=[])
    train(run, model, logged=lambda loss: loss / 12)
    assert run.looks == []


def test_large_samples_are_thinned_and_say_so(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_copies, "MOST_NUMBERS", 8)
    model = classifier()
    run = watch(model, probes=[])
    train(run, model)
    kept = only(run).data.input
    x, _ = batch_of(SPOILED_AT)
    np.testing.assert_array_equal(kept, x[:1, :, ::2].numpy())
    assert (kept.attrs["every"], kept.attrs["along"]) == (2, 2)


def test_no_more_batches_of_alerts_are_kept_than_their_number(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_batches, "MOST_BATCHES", 0)
    model = classifier()
    run = watch(model, probes=[])
    train(run, model)
    assert [one.rule for one in run.alerts] == ["loss_spike"]
    assert run.looks == []


def paused(run: nbp.Run, model: nn.Module, between: Callable[[Batch], object]) -> None:
    """Train in the background until a gradient above any usual one pauses it, and to the end."""
    run.pause_when("1", "grad_norm", "> 5")
    background = run.train_in_background(lambda: train(run, model, between=between))
    held_at(run)
    run.resume()
    background.wait(PATIENCE_S)


def test_a_pause_by_a_value_keeps_the_batch_of_its_step(watch: Watch) -> None:
    model = classifier()
    run = watch(model, probes={"1": ["grad_norm"]})
    del run.rules["loss_spike"]
    paused(run, model, between=lambda batch: None)
    look = only(run)
    assert look.step == SPOILED_AT
    assert look.why.startswith(f"paused at step {SPOILED_AT}: 1 · grad_norm ")
    np.testing.assert_array_equal(look.data.input, batch_of(SPOILED_AT)[0][:8].numpy())


def test_a_batch_that_was_changed_in_place_since_is_not_shown_as_that_of_the_step(
    watch: Watch,
) -> None:
    model = classifier()
    run = watch(model, probes={"1": ["grad_norm"]})
    del run.rules["loss_spike"]
    paused(run, model, between=lambda batch: batch[0].zero_())
    assert run.looks == []


def test_a_jump_keeps_its_batch_though_no_further_nan_is_looked_into(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nonfinite, "MOST_REPLAYS", 0)
    model = classifier()
    run = watch(model, probes=[])
    train(run, model)
    assert only(run).step == SPOILED_AT


@pytest.mark.parametrize(
    "remove", [lambda rules: rules.pop("loss_spike"), Rules.clear], ids=["one", "all"]
)
def test_a_rule_that_is_removed_keeps_no_batch(
    watch: Watch, remove: Callable[[Rules], object]
) -> None:
    model = classifier()
    run = watch(model, probes=[])
    remove(run.rules)
    train(run, model)
    assert run.looks == []
