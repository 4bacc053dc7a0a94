"""A step of the trainer is the step that one writes by hand, bit for bit."""

import copy
import math
import threading
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from notebook_probe import DataCollector, train
from notebook_probe.errors import NonFiniteGradientError
from notebook_probe.train import Trainer, add_loss, get_losses
from notebook_probe.train.metrics.averages import MovingAverage
from tests.train.conftest import batches, small_model, trainer

cross_entropy = nn.functional.cross_entropy


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [value.detach().clone() for value in model.state_dict().values()]


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(weights(a), weights(b), strict=True))


def by_hand(
    model: nn.Module, data: Any, accumulate: int = 1, clip: float | None = None
) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    losses = []
    for i in range(0, len(data), accumulate):
        group = data[i : i + accumulate]
        optimizer.zero_grad()
        parts = []
        for x, y in group:
            loss = cross_entropy(model(x), y)
            (loss / len(group) if len(group) > 1 else loss).backward()
            parts.append(loss.detach())
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        scheduler.step()
        losses.append(float(torch.stack(parts).mean()))
    return losses


@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("accumulate", [1, 2, 3])
def test_it_trains_as_a_loop_by_hand_does(accumulate: int, clip: float | None) -> None:
    data, mine, theirs = batches(8), small_model(), small_model()
    torch.manual_seed(7)
    expected = by_hand(theirs, data, accumulate, clip)
    torch.manual_seed(7)
    optimizer = torch.optim.AdamW(mine.parameters(), 1e-2)
    ours = Trainer(
        mine,
        cross_entropy,
        optimizer,
        scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5),
        accumulate=accumulate,
        clip=clip,
    )
    groups = [data[i : i + accumulate] for i in range(0, len(data), accumulate)]
    found = [ours.train_step_accumulated(group) for group in groups]
    assert [one["loss"] for one in found if one is not None] == expected
    assert same(mine, theirs)


def test_batches_that_are_accumulated_reach_the_device_one_after_the_other() -> None:
    trace: list[str] = []

    class Far:
        def to(self, device: Any) -> torch.Tensor:
            trace.append("placed")
            return batches(1)[0][0]

    model = small_model()
    model.register_forward_pre_hook(lambda module, args: trace.append("called"))
    ours = trainer(model, accumulate=3).in_device("cpu")
    ours.train_step_accumulated([(Far(), y) for _, y in batches(3)])
    assert trace == ["placed", "called"] * 3


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300))
def test_a_moving_average_is_the_mean_of_a_hundred_and_exponential_after(
    values: list[float],
) -> None:
    average = MovingAverage()
    found = [float(average.add(value)) for value in values]
    assert np.allclose(found[:100], np.cumsum(values[:100]) / np.arange(1, len(values[:100]) + 1))
    for i in range(100, len(values)):
        assert math.isclose(
            found[i], found[i - 1] * 0.99 + values[i] * 0.01, rel_tol=1e-9, abs_tol=1e-9
        )


def test_what_is_reported_comes_in_order_and_the_average_begins_anew() -> None:
    ours = trainer(train_metrics={"accuracy": lambda p, y: (p.argmax(1) == y).float()})
    names = ["loss", "loss_moving", "fn_loss_moving", "accuracy"]
    first, second = (ours.train_step(batch) for batch in batches(2))
    assert first is not None
    assert second is not None
    assert [*first] == [*second] == names
    assert second["loss_moving"] == (first["loss"] + second["loss"]) / 2
    ours.reset_train_metrics()
    third = ours.train_step_accumulated(batches(1))
    assert third is not None
    assert third["loss_moving"] == third["loss"]


def test_metrics_are_those_of_the_outputs_and_labels() -> None:
    class Seen:
        name = "seen"

        def reset(self) -> None:
            self.rows: list[tuple[torch.Tensor, torch.Tensor]] = []

        def update(self, prediction: torch.Tensor, label: torch.Tensor) -> None:
            self.rows.append((prediction, label))

        def compute(self) -> dict[str, torch.Tensor]:
            right = [(p.argmax(1) == y).float().mean() for p, y in self.rows]
            return {"accuracy": torch.stack(right).mean(), "matrix": torch.ones(2, 2)}

    seen = Seen()
    ours, data = trainer(eval_metrics=[seen]), batches(3)
    found = ours.eval(data)
    ours.model.eval()
    expected = [(ours.model(x).argmax(1) == y).float().mean() for x, y in data]
    assert [*found] == ["loss", "fn_loss", "seen_accuracy"]
    assert found["seen_accuracy"] == float(torch.stack(expected).mean())
    assert all(torch.equal(y, label) for (_, y), (_, label) in zip(data, seen.rows, strict=True))


def test_an_evaluation_is_weighted_by_the_size_of_batches() -> None:
    ours, (big,), (small,) = trainer(), batches(1, size=7), batches(1, size=2, seed=3)
    found = ours.eval([big, small])
    ours.model.eval()
    with torch.no_grad():
        x, y = torch.cat([big[0], small[0]]), torch.cat([big[1], small[1]])
        assert math.isclose(found["loss"], cross_entropy(ours.model(x), y).item(), rel_tol=1e-6)


class Restless(nn.Module):
    """Draws and counts in evaluation mode, too."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
        self.norm.eval()  # frozen by its owner
        self.register_buffer("n_calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.get_buffer("n_calls").add_(1)
        return self.norm(self.inner(x + torch.randn_like(x)))


def test_an_evaluation_leaves_everything_as_it_was() -> None:
    torch.manual_seed(0)
    ours = trainer(Restless())
    modes = [module.training for module in ours.model.modules()]
    before, state = weights(ours.model), torch.get_rng_state()
    ours.eval(batches(3))
    assert [module.training for module in ours.model.modules()] == modes
    assert all(torch.equal(a, b) for a, b in zip(before, weights(ours.model), strict=True))
    assert torch.equal(state, torch.get_rng_state())


class Carrying(nn.Module):
    """Puts another tensor in the place of a buffer, as what carries a state along does."""

    carried: torch.Tensor
    first: torch.Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.inner = small_model()
        self.register_buffer("carried", torch.zeros(2))
        self.register_buffer("first", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.carried = self.inner(x).detach().mean(0)
        if self.first is None:
            self.first = self.carried
        out: torch.Tensor = self.inner(x) + self.carried
        return out


def test_an_evaluation_leaves_buffers_that_a_forward_replaces() -> None:
    model = Carrying()
    ours = trainer(model)
    ours.eval(batches(1))
    assert model.first is None
    assert torch.equal(model.carried, torch.zeros(2))
    ours.train_step_accumulated(batches(1))
    carried = model.carried
    ours.eval(batches(3, seed=2))
    assert model.carried is carried
    assert model.first is carried


def test_empty_data_cannot_be_evaluated() -> None:
    with pytest.raises(ValueError, match="data 'eval' is empty"):
        trainer().eval([])


class Sparse(nn.Module):
    """Adds a term in the model, inside a checkpointed segment."""

    def __init__(self, segments: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.segments = nn.Linear(3, 8), nn.Linear(8, 2), segments

    def part(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.a(x).relu()
        add_loss(0.1 * hidden.abs())
        return hidden

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.segments:
            return self.b(self.part(x))
        return self.b(checkpoint(self.part, x, use_reentrant=False))


@pytest.mark.parametrize("segments", [False, True])
def test_a_term_of_the_model_counts_once(segments: bool) -> None:
    model = Sparse(segments)
    twin = copy.deepcopy(model)
    (x, y), optimizer = batches(1)[0], torch.optim.SGD(model.parameters(), 0.1)
    found = Trainer(model, cross_entropy, optimizer).train_step((x, y))
    hidden = twin.a(x).relu()
    own = cross_entropy(twin.b(hidden), y)
    total = own + (0.1 * hidden.abs()).mean()
    total.backward()
    assert found is not None
    assert twin.a.weight.grad is not None
    assert (found["loss"], found["fn_loss_moving"]) == (total.item(), own.item())
    torch.optim.SGD(twin.parameters(), 0.1).step()
    assert torch.equal(model.a.weight, twin.a.weight)
    assert get_losses() is None


def test_terms_belong_to_their_thread_and_their_step() -> None:
    seen: list[Any] = []

    class Asks(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            add_loss(self.weight.sum())
            thread = threading.Thread(target=lambda: seen.append(get_losses()))
            thread.start()
            thread.join()
            seen.append(get_losses())
            return super().forward(x)

    ours = trainer(Asks(3, 2))
    ours.train_step_accumulated(batches(1)), ours.train_step_accumulated(batches(1))
    assert seen[0] is None
    assert seen[2] is None
    assert seen[1].shape == seen[3].shape == ()  # one term each


def test_a_model_may_bring_all_of_its_loss_and_must_bring_some() -> None:
    model = Sparse(segments=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    found = Trainer(model, None, optimizer).train_step(batches(1)[0][0])
    assert found is not None
    assert [*found] == ["loss", "loss_moving"]
    with pytest.raises(ValueError, match="there is no loss"):
        trainer(loss_fn=None).train_step_accumulated(batches(1))


def test_labels_come_first_in_lists_if_they_are_to() -> None:
    def loss(labels: list[torch.Tensor], predictions: list[torch.Tensor]) -> torch.Tensor:
        return nn.functional.cross_entropy(predictions[0], labels[0], reduction="none")

    plain, first = small_model(), small_model()
    torch.manual_seed(1)
    a = trainer(plain).train_step_accumulated(batches(1))
    torch.manual_seed(1)
    b = trainer(first, loss_fn=loss, labels_first=True).train_step_accumulated(batches(1))
    assert a == b
    assert same(plain, first)


@pytest.mark.parametrize("names", [("x", "labels"), ("x", "target")])
def test_a_batch_that_is_a_dict_is_handed_over_by_name(names: tuple[str, str]) -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.got = nn.Linear(3, 2), [""]

        def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
            self.got = ["x"] + (["labels"] if labels is not None else [])
            return self.inner(x)

    model, (x, y) = Named(), batches(1)[0]
    assert trainer(model).train_step(dict(zip(names, (x, y), strict=True))) is not None
    assert model.got == (["x", "labels"] if "labels" in names else ["x"])


def test_an_update_of_ones_own_acts_after_the_optimizer_and_before_metrics() -> None:
    ours, seen = trainer(), []
    weight = ours.model.get_parameter("3.weight")

    def clamp() -> None:
        seen.append(torch.is_grad_enabled())
        weight.clamp_(-0.01, 0.01)

    ours.add_per_step_update(lambda: pytest.fail("it was replaced"), scope="clamp")
    ours.add_per_step_update(clamp, scope="clamp")
    ours.train_step_accumulated(batches(1))
    assert seen == [False]
    assert weight.abs().max() <= 0.01


def test_a_handler_hears_of_each_new_kind_of_batch_once() -> None:
    ours, seen = trainer(max_executors=3), []
    x, y = batches(1)[0]
    ours.train_step(("early", x, y))
    ours.on_first_use(lambda model, mode: seen.append((model is ours.model, mode)))
    for spec in ("early", "a", "a", "early"):
        ours.train_step((spec, x, y))
    ours.eval([("a", x, y)] * 2)
    assert seen == [(True, "train"), (True, "eval")]
    with pytest.raises(RuntimeError, match="more than max_executors=3"):
        ours.train_step(("b", x, y))


@pytest.mark.parametrize("on_nonfinite", ["raise", "skip"])
def test_gradients_that_cannot_be_clipped_never_reach_the_weights(on_nonfinite: Any) -> None:
    ours = trainer(clip=1.0, on_nonfinite=on_nonfinite)
    x, y = batches(1)[0]
    before = weights(ours.model)
    if on_nonfinite == "skip":
        assert ours.train_step((x * math.inf, y)) is None
    else:
        with pytest.raises(NonFiniteGradientError, match=r"clip=1 cannot scale that; allowed"):
            ours.train_step((x * math.inf, y))
    assert all(torch.equal(a, b) for a, b in zip(before, weights(ours.model), strict=True))


@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_step_that_a_scaler_skips_is_none(clip: float | None) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    ours, data = trainer(scaler=scaler, clip=clip), batches(3)
    model = copy.deepcopy(ours.model)
    assert ours.train_step_accumulated(data[:1]) is not None
    x, y = data[1]
    before = weights(ours.model)
    assert ours.train_step((x * math.inf, y)) is None
    assert all(torch.equal(a, b) for a, b in zip(before, weights(ours.model), strict=True))
    assert scaler.get_scale() == 2.0
    assert ours.train_step_accumulated(data[2:]) is not None
    assert not same(model, ours.model)


def test_metrics_are_called_as_their_class() -> None:
    class BinaryAccuracy:
        def update(self, prediction: Any, label: Any) -> None: ...
        def reset(self) -> None: ...
        def compute(self) -> float:
            return 0.5

    assert trainer(eval_metrics=[BinaryAccuracy()]).eval(batches(1))["binary_accuracy"] == 0.5


def test_the_context_and_the_device_are_set_in_a_chain() -> None:
    ours = trainer(context={"lr": 1}).in_device("cpu").set_context({"lr": 2})
    assert ours.context == {"lr": 2}
    assert ours.train_step_accumulated(batches(1)) is not None


@pytest.mark.slow
def test_a_collector_in_the_context_is_given_what_the_optimizer_does() -> None:
    collector = nbp.DataCollector().collect_all()
    ours = trainer(optimizer=None, context={"optimizer_grads_l2_collector": collector})
    collector.attach_to_executor(ours.training)
    norms: list[float] = []

    def norm(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        gradients = [value.grad for value in ours.model.parameters() if value.grad is not None]
        norms.append(float(torch.cat([one.double().flatten() for one in gradients]).norm()))

    ours.optimizer.register_step_pre_hook(norm)
    for batch in batches(3):
        ours.train_step(batch)
    assert np.allclose(collector.get_series_values("optimizer_grads_l2norm"), norms, rtol=1e-6)


def test_batches_that_are_evaluated_one_by_one_add_up_to_an_evaluation() -> None:
    def accuracy(prediction: Tensor, label: Tensor) -> Tensor:
        return (prediction.argmax(1) == label).double().mean()

    ours, data = trainer(eval_metrics={"accuracy": accuracy}), batches(3)
    data[-1] = (data[-1][0][:2], data[-1][1][:2])  # which weighs less
    whole = ours.eval(data)
    ours.reset_eval_metrics()
    found = [ours.eval_step(batch) for batch in data]
    assert found[-1] == pytest.approx(whole)
    assert found[0] == pytest.approx(ours.eval(data[:1]))
    assert ours.eval_step(data[1]) == pytest.approx(ours.eval(data[:2])), "it goes on"
    assert ours.model.training


def test_a_model_with_a_keyword_for_it_is_told_the_kind_of_its_batch() -> None:
    seen: list[Any] = []

    class Told(nn.Linear):
        def forward(self, x: Tensor, *, spec: Any = "none") -> Tensor:
            seen.append(spec)
            return super().forward(x)

    class Spectrum(nn.Linear):
        def forward(self, spec: Tensor) -> Tensor:
            return super().forward(spec)

    (x, y), *_ = batches(1)
    for model in (Told(3, 2), Spectrum(3, 2)):
        ours = trainer(model)
        ours.train_step(("first", [x], [y]))
        ours.eval([(x, y)])
    assert seen == ["first", None]


def test_the_keys_and_names_of_what_an_optimizer_does_are_public() -> None:
    collector = DataCollector().collect_all()
    ours = trainer(context={train.OPTIMIZER_GRADS_L2_COLLECTOR: collector})
    collector.attach_to_executor(ours.training)
    ours.train_step_accumulated(batches(1))
    assert collector.get_all_series_names() == [
        train.OPTIMIZER_GRADS_L2NORM,
        train.OPTIMIZER_GLOBAL_STEP,
    ]
