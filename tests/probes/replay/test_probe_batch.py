"""The model is run once more on a kept batch, and nothing is left of it but the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW

import notebook_probe as nbp
from tests.models import CASES, ConvNet, floats, loss_of, made, mlp
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

AGAIN: dict[Any, Any] = {
    "": ["sharpness", "sam_sharpness", "alpha_step", "tic_trace"],
    "*": ["feature_drift", "cka_to_reference"],
}
BESIDE = {"*": ["output_norm", "grad_norm", "update_ratio"]}
STEPS = 3


def loss_fn(output: Any, targets: Any) -> Tensor:
    """Draws as many numbers as there are generators."""
    noise = torch.rand(()) + np.random.rand()  # noqa: NPY002  the one that everybody shares
    return loss_of(output) + 0 * noise


class Whole(nn.Module):
    """A case with BatchNorm, dropout, a frozen part in evaluation mode, a hook and a counter."""

    n_seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(4, 6), nn.BatchNorm1d(6)
        self.drop, self.frozen, self.last = nn.Dropout(0.4), nn.BatchNorm1d(6), nn.Linear(6, 2)
        self.frozen.requires_grad_(False)
        self.register_buffer("n_seen", torch.zeros((), dtype=torch.int64))
        self.n_calls = 0

    def train(self, mode: bool = True) -> Whole:
        super().train(mode)
        self.frozen.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        self.n_calls += 1
        self.n_seen += len(x)
        x.mul_(1.0)
        return self.last(self.frozen(self.drop(self.norm(self.first(x)).relu())))


def modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def hooks(model: nn.Module) -> list[tuple[int, int]]:
    return [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]


def trained(
    model: nn.Module,
    batch: Callable[[int], Tensor],
    begin: Callable[[nn.Module], Any],
    amp: bool = False,
) -> tuple[dict[str, bytes], Any]:
    """What a training leaves behind, with accumulation, dropout and an evaluation."""
    optimizer = AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    begun = begin(model.train())
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=amp):
                output = model(batch(2 * step + micro))
            loss_of(output).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(batch(50 + step))
        model.train()
    kept = everything(model, [optimizer])
    kept |= {f"mode {i}": bytes([mode]) for i, mode in enumerate(modes(model))}
    numpys: Any = np.random.get_state()  # noqa: NPY002  as above
    return {**kept, "numpy": numpys[1].tobytes()}, begun


def probing(watch: Watch, probes: Any, batch: Tensor) -> Callable[[nn.Module], nbp.Run]:
    def begin(model: nn.Module) -> nbp.Run:
        run = watch(model, probes=probes)
        run.probe_batch(batch, None, loss_fn)
        return run

    return begin


def assert_untouched(
    build: Callable[[], nn.Module], batch: Callable[[int], Tensor], watch: Watch, amp: bool = False
) -> None:
    """Training, and what else is recorded of it, are as without a probe batch."""
    plain, alone = trained(made(build), batch, lambda m: watch(m, probes=BESIDE), amp)
    both: dict[Any, Any] = {"": AGAIN[""], "*": [*AGAIN["*"], *BESIDE["*"]]}
    probed, run = trained(made(build), batch, probing(watch, both, batch(99)), amp)
    assert differing(plain, probed) == []
    assert np.isfinite(run.data.sharpness.sel(module="(root)")).all()
    for name in ("output_norm", "grad_norm", "update_ratio", "calls"):
        expected = alone.data[name]
        np.testing.assert_array_equal(run.data[name].sel(module=expected.module), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in CASES if kind != "tied"])
def test_training_and_other_probes_are_equal_bit_for_bit(kind: str, watch: Watch) -> None:
    assert_untouched(CASES[kind].build, CASES[kind].batch, watch)


@pytest.mark.slow
@pytest.mark.parametrize("amp", [False, True])
def test_batchnorm_dropout_frozen_parts_and_counters_are_untouched(amp: bool, watch: Watch) -> None:
    assert_untouched(Whole, floats(5, 4), watch, amp)


def test_attributes_modes_and_hooks_are_put_back(watch: Watch) -> None:
    model = made(Whole).train()
    before = modes(model)
    run = watch(model, probes=AGAIN)
    n_hooks = hooks(model)

    run.probe_batch(torch.randn(5, 4), None, loss_fn)

    assert (model.n_calls, int(model.n_seen), modes(model)) == (0, 0, before)
    assert hooks(model) == n_hooks


def test_what_is_measured_belongs_to_the_weights_at_which_the_step_begins(watch: Watch) -> None:
    model, x = made(mlp), torch.randn(6, 4)
    expected = []
    run = watch(model, probes={"": ["sam_sharpness"], "2": ["feature_drift"]})
    run.probe_batch(x, torch.ones(6, 2), nn.functional.mse_loss)
    optimizer, first = SGD(model.parameters(), lr=0.5), model(x).detach().numpy()
    for step in range(STEPS):
        expected.append(np.sqrt(np.mean((model(x).detach().numpy() - first) ** 2)))
        optimizer.zero_grad()
        loss_of(model(floats(5, 4)(step))).backward()
        optimizer.step()
    np.testing.assert_allclose(run.series("2", "feature_drift"), expected, rtol=1e-5, atol=1e-8)
    assert len(run.series("", "sam_sharpness")) == STEPS


def test_schedules_hold_and_other_steps_run_nothing(watch: Watch) -> None:
    calls = 0

    def counted(output: Tensor, targets: Any) -> Tensor:
        nonlocal calls
        calls += 1
        return loss_of(output)

    model = made(mlp)
    run = watch(model, probes={"": [["sam_sharpness", "every(2)"]]})
    run.probe_batch(torch.randn(6, 4), None, counted)
    counts = [calls]
    for step in range(4):
        loss_of(model(floats(5, 4)(step))).backward()
        SGD(model.parameters(), lr=0.1).step()
        counts.append(calls)
    assert np.diff(counts).tolist() == [2, 0, 2, 0]  # value with gradient, one step uphill
    assert run.series("", "sam_sharpness").step.values.tolist() == [0, 2]


def test_places_have_the_blocks_of_the_hessian(watch: Watch) -> None:
    model, x, y = made(mlp), torch.randn(6, 4), torch.randn(6, 2)
    wanted = {place: ["sharpness"] for place in ("", "0", "2.weight")}
    run = watch(model, probes=wanted)
    run.probe_batch(x, y, nn.functional.mse_loss)
    names, sizes = zip(*((n, p.numel()) for n, p in model.named_parameters()), strict=True)
    shapes = [p.shape for p in model.parameters()]

    def loss(flat: Tensor) -> Tensor:
        parts = [p.reshape(s) for p, s in zip(flat.split(sizes), shapes, strict=True)]
        given = dict(zip(names, parts, strict=True))
        return nn.functional.mse_loss(torch.func.functional_call(model, given, (x,)), y)

    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    full = torch.autograd.functional.hessian(loss, flat).double().numpy()
    model(x).sum().backward()
    SGD(model.parameters(), lr=0.1).step()
    blocks = {"": slice(0, 58), "0": slice(0, 40), "2.weight": slice(40, 56)}
    for place, block in blocks.items():
        expected = np.linalg.eigvalsh(full[block, block])[-1]
        assert float(run.series(place, "sharpness")[0]) == pytest.approx(expected, rel=1e-4)


def step(model: nn.Module, batch: Iterable[Any] = ()) -> None:
    loss_of(model(torch.ones(5, 4))).backward()
    SGD(model.parameters(), lr=0.1).step()


def test_without_a_batch_the_status_says_what_to_do(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"": ["sharpness"], "0": ["feature_drift"]})
    step(model)
    run.controls.settle()
    assert {probe.note for probe in run.status().silent} == {
        "there is no probe batch: keep one with run.probe_batch(inputs, targets, loss_fn)"
    }
    assert not run.status().errors


def test_a_loss_that_fails_later_is_counted_and_leaves_no_trace(watch: Watch) -> None:
    model, plain = made(ConvNet), made(ConvNet)
    broken = False

    def fails(output: Any, targets: Any) -> Tensor:
        if broken:
            raise ValueError("broken on purpose")
        return loss_of(output)

    run = watch(model, probes={"": ["sharpness", "output_norm"]})
    run.probe_batch(floats(4, 1, 6, 6)(9), None, fails)
    broken = True
    for each in (plain, model):
        for i in range(4):
            loss_of(each(floats(4, 1, 6, 6)(i))).backward()
            SGD(each.parameters(), lr=0.1).step()
    run.controls.settle()
    assert differing(everything(plain), everything(model)) == []
    assert modes(model) == modes(plain)
    [probe] = run.status().errors
    assert (probe.error, probe.disabled) == ("ValueError: broken on purpose", True)
    assert len(run.series("", "output_norm")) == 4


def test_a_module_that_the_batch_does_not_reach_is_a_gap_with_a_reason(watch: Watch) -> None:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.one(x) if len(x) > 5 else self.other(x)

    model = made(Branches)
    run = watch(model, probes={"one": ["feature_drift", "sharpness"], "other": ["sharpness"]})
    run.probe_batch(torch.ones(3, 4), None, loss_fn)
    step(model)
    run.controls.settle()
    notes = {(probe.module, probe.quantity): probe.note for probe in run.status().silent}
    assert notes == {
        ("one", "feature_drift"): "not called for the probe batch",
        ("one", "sharpness"): "the loss of the probe batch does not depend on these parameters",
    }


def test_another_batch_is_a_new_reference(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"2": ["feature_drift"]})
    run.probe_batch(torch.ones(3, 4), None, loss_fn)
    step(model)
    step(model)
    run.probe_batch(torch.zeros(3, 4), None, loss_fn)
    step(model)
    step(model)
    drift = run.series("2", "feature_drift").values
    assert [value == 0 for value in drift] == [True, False, True, False]


def test_the_batch_is_a_copy(watch: Watch) -> None:
    model, x = made(mlp), torch.ones(3, 4)
    run = watch(model, probes={"2": ["feature_drift"]})
    run.probe_batch(x, None, loss_fn)
    loss_of(model(x)).backward()
    x.zero_()
    model(x)
    run.step()
    loss_of(model(x)).backward()
    run.step()
    assert run.series("2", "feature_drift").values.tolist() == [0.0, 0.0]


def test_the_record_tells_when_which_batch_was_kept(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.probe_batch(torch.ones(3, 4), torch.ones(3, 2), nn.functional.mse_loss)
    step(model)
    run.probe_batch({"input": torch.ones(2, 4)}, None, loss_fn)
    told = [(event.step, event.text) for event in run.events if event.kind == "probe_batch"]
    assert told == [
        (0, "inputs (3, 4) float32; targets (3, 2) float32; mse_loss"),
        (1, "inputs (2, 4) float32; targets without tensors; loss_fn"),
    ]
