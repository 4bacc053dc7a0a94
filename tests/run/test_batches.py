"""What the loop tells: batches handed over, scalars logged, time spent waiting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.errors import NotApplicableError, QuantityError, TrainingStopped
from notebook_probe.quantities.reduce.stat import Stat
from notebook_probe.run.attach.requests import Control
from notebook_probe.run.run import Run

N_STEPS = 6


def mean_target(batch_targets: Tensor) -> Tensor:
    return batch_targets.double().mean()


def loss_at(batch_losses: Tensor, batch_indices: Tensor) -> Tensor:
    """The losses weighted by where their samples stand."""
    return (batch_losses.double() * batch_indices).sum()


def hit(output: Tensor, batch_targets: Tensor) -> Tensor:
    return (output.argmax(-1) == batch_targets).double().mean()


def right_logit(output: Tensor, batch_targets: Tensor) -> Tensor:
    return output.gather(1, batch_targets[:, None]).double().mean()


def losses_rms(batch_losses_sumsq: Stat) -> float:
    return batch_losses_sumsq.rms


def squared_loss(logged_loss: float) -> float:
    return logged_loss**2


class Data:
    """Batches (x, y, indices), the same every time."""

    def __init__(self, n: int = N_STEPS) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        random = torch.Generator().manual_seed(1)
        for step in range(self.n):
            x = torch.randn(8, 5, generator=random)
            yield x, torch.randint(3, (8,), generator=random), torch.arange(8) + 8 * step


@pytest.fixture
def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def train(model: nn.Module, run: Run | None = None, micro: int = 1) -> list[list[Tensor]]:
    """The batches with their logits and losses, of each step."""
    seen = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (x, y, indices) in enumerate(Data()):
        if run is not None:
            run.batch(targets=y, indices=indices)
        logits = model(x)
        losses = F.cross_entropy(logits, y, reduction="none")
        if run is not None:
            run.batch(losses=losses)
        losses.mean().backward()
        seen.append([one.detach().double() for one in (logits, losses, y, indices)])
        if (step + 1) % micro == 0:
            optimizer.step()
            optimizer.zero_grad()
    return seen


def values(run: Run, quantity: str, module: str = "") -> list[float]:
    series: list[float] = run.series(module, quantity).values.tolist()
    return series


def test_what_is_handed_over_is_measured_at_its_own_step(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", [mean_target, loss_at, losses_rms, right_logit])
        run.attach("2", right_logit, "every(2)")
        seen = [[one.numpy() for one in batch] for batch in train(model, run)]
        assert not run.status().errors
    targets = [y.mean() for _, _, y, _ in seen]
    weighted = [(losses * indices).sum() for _, losses, _, indices in seen]
    sizes = [np.sqrt((losses**2).mean()) for _, losses, _, _ in seen]
    right = [logits[np.arange(8), y.astype(int)].mean() for logits, _, y, _ in seen]
    assert values(run, "mean_target") == pytest.approx(targets)
    assert values(run, "loss_at") == pytest.approx(weighted, rel=1e-5)
    assert values(run, "losses_rms") == pytest.approx(sizes, rel=1e-5)
    assert values(run, "right_logit") == pytest.approx(right, rel=1e-5)
    assert values(run, "right_logit", "2") == pytest.approx(right[::2], rel=1e-5)


def test_micro_batches_are_pooled_and_never_mixed(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", [mean_target, loss_at, losses_rms, right_logit])
        seen = [[one.numpy() for one in batch] for batch in train(model, run, micro=2)]
    pairs = [*zip(seen[::2], seen[1::2], strict=True)]
    joined = [[np.concatenate(both) for both in zip(*pair, strict=True)] for pair in pairs]
    weighted = [sum((b[1] * b[3]).sum() for b in pair) / 2 for pair in pairs]
    right = [logits[np.arange(16), y.astype(int)].mean() for logits, _, y, _ in joined]
    sizes = [np.sqrt((losses**2).mean()) for _, losses, _, _ in joined]
    assert values(run, "loss_at") == pytest.approx(weighted, rel=1e-5)
    assert values(run, "right_logit") == pytest.approx(right, rel=1e-5)
    assert values(run, "losses_rms") == pytest.approx(sizes, rel=1e-5)


def test_an_evaluation_has_batches_of_its_own(model: nn.Module, tmp_path: Path) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", hit, phase="eval")
        run.attach("", mean_target)
        for x, y, _ in Data(3):
            run.batch(targets=y)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        hits = []
        with torch.no_grad():
            for x, y, _ in Data(2):
                run.batch(targets=y)
                hits.append((model(x).argmax(-1) == y).double().mean().item())
        model.train()
        for x, y, _ in Data():
            run.batch(targets=y)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        assert not run.status().silent
    assert run.series("", "eval_hit").step.values.tolist() == [3]
    assert values(run, "eval_hit") == pytest.approx([np.mean(hits)])
    means = [y.double().mean().item() for data in (Data(3), Data()) for _, y, _ in data]
    assert values(run, "mean_target") == pytest.approx(means)


def test_what_is_handed_over_at_an_old_checkpoint_lies_at_its_step(
    model: nn.Module, tmp_path: Path
) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", ["accuracy", "confidence"], phase="eval")
        train(model, run)
        hits: dict[int, list[Tensor]] = {}
        for step in (4, 1):
            with run.at_step(step), torch.no_grad():
                for x, y, _ in Data(step):
                    run.batch(targets=y)
                    hits.setdefault(step, []).append(model(x).argmax(-1) == y)
        assert not run.status().errors
    found = run.series("", "eval_accuracy")
    assert found.step.values.tolist() == [1, 4]
    want = [torch.cat(hits[step]).double().mean().item() for step in (1, 4)]
    assert found.values.tolist() == pytest.approx(want)


def test_training_is_the_same_bit_for_bit(model: nn.Module, tmp_path: Path) -> None:
    twin = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    twin.load_state_dict(model.state_dict())
    train(twin)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", [loss_at, right_logit, losses_rms])
        train(model, run)
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, twin.state_dict()[name])


def test_arrays_lists_and_containers_are_taken_and_text_is_refused(
    model: nn.Module, tmp_path: Path
) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", mean_target)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for given in ([1, 2], np.array([1, 2]), {"label": torch.tensor([1, 2])}):
            run.batch(targets=given)
            model(torch.ones(2, 5)).sum().backward()
            optimizer.step()
        with pytest.raises(QuantityError, match=r"batch\(targets=\.\.\.\): str 'cats'; a tensor"):
            run.batch(targets="cats")
    assert values(run, "mean_target") == [1.5, 1.5, 1.5]


def test_the_status_says_what_the_loop_has_not_told(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", [loss_at, squared_loss, hit])
        for x, y, _ in Data(2):
            losses = F.cross_entropy(model(x), y, reduction="none")
            run.batch(losses=losses, targets=y)
            losses.backward(torch.ones_like(losses) / len(losses))  # called on no loss
            run.step()
        notes = {probe.quantity: probe.note for probe in run.status().probes}
    assert "run.batch(indices=...); so far it has losses, targets" in notes["loss_at"]
    assert "run.log(loss=...)" in notes["squared_loss"]
    assert "before the forward" in notes["hit"]


def test_the_status_knows_what_was_logged_and_is_too_little_yet(
    model: nn.Module, tmp_path: Path
) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", "loss_spike_score")
        for step in range(3):
            model(torch.ones(2, 5)).sum().backward()
            run.log(loss=step)
            run.step()
        run.controls.settle()
        (probe,) = run.status().probes
    assert probe.note == "loss was not logged often enough yet"


def test_a_value_of_the_whole_step_belongs_to_the_model(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        with pytest.raises(NotApplicableError, match="of the step as a whole; attach it at ''"):
            run.attach("0", squared_loss)
        with pytest.raises(NotApplicableError, match="of the step as a whole"):
            run.attach("2.bias", mean_target)
        run.attach("", squared_loss)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            model(torch.ones(2, 5)).sum().backward()
            if step == 0:
                run.log(loss=3.0)
            optimizer.step()
            if step == 0:
                with pytest.warns(nbp.ReplacedWarning, match="step 0 has a value"):
                    run.log(loss=torch.tensor(1.0))
            elif step == 2:
                run.log(loss=torch.tensor(3.0))
    assert values(run, "squared_loss") == [1.0, 9.0]


def test_handing_over_before_anything_is_attached_does_nothing(
    model: nn.Module, tmp_path: Path
) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.batch(targets=torch.zeros(2))
        assert run.status().state == "waiting"
        run.attach("", mean_target, 2)
        train(model, run)
    assert run.series("", "mean_target").step.values.tolist() == [0, 2, 4]


def test_a_run_is_stopped_at_the_first_word_of_the_next_step(
    model: nn.Module, tmp_path: Path
) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("", mean_target)
        for x, y, _ in Data(1):
            run.batch(targets=y)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        run.controls.put(Control("stop"))
        with pytest.raises(TrainingStopped, match="stopped before step 1"):
            run.batch(targets=y)


def test_batches_come_as_they_are_epoch_after_epoch(model: nn.Module, tmp_path: Path) -> None:
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        loader = run.batches(Data())
        assert len(loader) == N_STEPS
        for _ in range(2):
            assert [i[0].item() for _, _, i in loader] == [0, 8, 16, 24, 32, 40]
