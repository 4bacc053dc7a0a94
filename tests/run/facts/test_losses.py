"""What a loss is made of: each mistake is named at the first step, and its twin is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam

import notebook_probe as nbp
from tests.run.facts.trained import small, train_it

Loss = Callable[[Tensor, Tensor], Tensor]


def labels(x: Tensor) -> Tensor:
    return (x[:, 0] > 0.5).long()


def column(x: Tensor) -> Tensor:
    return x[:, 0]


def shares(x: Tensor) -> Tensor:
    """Return a distribution over two classes."""
    return (4 * x[:, :2]).softmax(1)


def aligned(scores: Tensor) -> Tensor:
    """Return the CTC loss of eight steps of two sequences."""
    ones, lengths = torch.ones(2, 3, dtype=torch.long), torch.tensor([8, 8])
    return F.ctc_loss(scores.view(8, 2, 2), ones, lengths, torch.tensor([3, 3]))


def attended(out: Tensor, weights: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the values of four samples of four places, weighed by their scores."""
    values = out.view(4, 4, 2)
    return weights(values @ values.transpose(1, 2)) @ values


SPOILED: dict[str, list[Loss]] = {
    "activation_before_loss": [
        lambda out, x: F.cross_entropy(out.softmax(1), labels(x)),
        lambda out, x: F.binary_cross_entropy_with_logits(out[:, 0].sigmoid(), x[:, 0].round()),
        lambda out, x: F.cross_entropy(out.relu(), labels(x)),
        lambda out, x: F.cross_entropy(out.sigmoid(), labels(x)),
        lambda out, x: F.binary_cross_entropy_with_logits(
            out.softmax(1), F.one_hot(labels(x), 2).float()
        ),
        lambda out, x: F.binary_cross_entropy_with_logits(out[:, 0].relu(), x[:, 0].round()),
    ],
    "no_log_before_nll": [
        lambda out, x: F.nll_loss(out.softmax(1), labels(x)),
        lambda out, x: F.nll_loss(out, labels(x)),
        lambda out, x: F.kl_div(out.softmax(1), shares(x), reduction="batchmean"),
        lambda out, x: (
            F.kl_div(out.softmax(1), shares(x), reduction="sum") * 4 + out.square().sum()
        ),
        lambda out, x: F.kl_div(out, shares(x), reduction="batchmean"),
        lambda out, x: F.kl_div(out.softmax(1), shares(x).log(), reduction="sum", log_target=True),
        lambda out, x: F.kl_div(out.log_softmax(1), shares(x), reduction="sum", log_target=True),
        lambda out, x: F.kl_div(out.log_softmax(1), shares(x).log(), reduction="sum"),
        lambda out, x: F.kl_div(out.log_softmax(1), x[:, :2] - 0.5, reduction="batchmean"),
        lambda out, x: aligned(out),
        lambda out, x: aligned(out.softmax(1)),
    ],
    "softmax_dimension": [
        lambda out, x: F.nll_loss(out.log_softmax(0), labels(x)),
        lambda out, x: F.nll_loss((out.softmax(0) + 1e-9).log(), labels(x)),
        lambda out, x: F.mse_loss(out.softmax(0), F.one_hot(labels(x), 2).float()),
        lambda out, x: -(out.log_softmax(0) * shares(x)).sum(1).mean(),
        lambda out, x: F.kl_div(out.log_softmax(0), shares(x), reduction="batchmean"),
        lambda out, x: F.nll_loss(  # four classes of each pixel
            out.view(2, 4, 2, 2).log_softmax(-1), labels(x)[:8].view(2, 2, 2)
        ),
        lambda out, x: attended(out, lambda scores: scores.softmax(0)).square().mean(),
        lambda out, x: attended(out, lambda scores: F.dropout(scores.softmax(-3))).square().mean(),
    ],
    "negated_loss": [
        lambda out, x: -F.cross_entropy(out, labels(x)),
        lambda out, x: -F.mse_loss(out, x[:, :2]),
        lambda out, x: -F.triplet_margin_loss(out[:4], out[4:8], out[8:12]),
        lambda out, x: -((out[:8] - out[8:]).norm(dim=1) - out[:8].norm(dim=1) + 1).relu().mean(),
    ],
    "dropout_before_loss": [
        lambda out, x: F.cross_entropy(F.dropout(out, 0.3), labels(x)),
        lambda out, x: F.mse_loss(F.dropout(out, 0.5), x[:, :2]),
    ],
    "broadcast_loss": [
        lambda out, x: (out[:, :1] - column(x)).square().mean(),
        lambda out, x: (out[:, :1] - column(x)).abs().sum(),
        lambda out, x: F.mse_loss(out[:, :1], column(x)),
    ],
}

HEALTHY: list[Loss] = [
    lambda out, x: F.mse_loss(out, x[:, :2]) / out.abs().max(),  # a divisor that is learned
    lambda out, x: F.cross_entropy(out, labels(x)),
    lambda out, x: F.cross_entropy(out, labels(x), label_smoothing=0.1),
    lambda out, x: F.cross_entropy(out[:, :, None].relu().mean(2), labels(x)),  # pooled, as images
    lambda out, x: F.nll_loss(out.log_softmax(1), labels(x)),
    lambda out, x: F.cross_entropy(5 * out.sigmoid(), labels(x)),  # scores that are bounded
    lambda out, x: F.binary_cross_entropy(out[:, 0].sigmoid(), x[:, 0].round()),
    lambda out, x: -(out.log_softmax(1)[:, 0] * (x[:, 0] - 0.5)).mean(),  # a policy's
    lambda out, x: -out.mean() + out.square().mean(),
    lambda out, x: F.triplet_margin_loss(out[:4], out[4:8], out[8:12]),
    lambda out, x: -out.relu().mean(),  # what a unit likes best
    lambda out, x: (out[:, :1] - x[:, :1]).square().mean(),
    lambda out, x: F.mse_loss(out, x[:, :2]),
    lambda out, x: (out[:, None, :1] - out[None, :, 0]).square().mean(),  # of pairs, on purpose
    lambda out, x: F.cross_entropy(out @ out.T, torch.arange(16)),
    lambda out, x: F.kl_div(out.log_softmax(1), shares(x), reduction="batchmean"),
    lambda out, x: F.kl_div(out.softmax(1).log(), shares(x), reduction="batchmean"),
    lambda out, x: F.kl_div(out.log_softmax(1), shares(x).log(), reduction="sum", log_target=True),
    lambda out, x: F.kl_div(shares(x).log(), out.softmax(1), reduction="batchmean"),  # reversed
    lambda out, x: (shares(x) * (x[:, :2] - out.softmax(1))).square().mean(),  # weighted squares
    lambda out, x: x.sum() - (out.log_softmax(1) * (x[:, :2] - 0.5)).sum(),  # rewards below 0
    lambda out, x: attended(out, lambda scores: scores.softmax(-1)).square().mean(),
    lambda out, x: (
        attended(  # of places that come first, and samples second
            out, lambda scores: scores.transpose(0, 2).softmax(0).transpose(0, 2)
        )
        .square()
        .mean()
    ),
    lambda out, x: F.cross_entropy(F.dropout(out) @ torch.rand(2, 2), labels(x)),
    lambda out, x: F.cross_entropy(out * (x[:, :2] > 0.5), labels(x)),  # some classes alone
    lambda out, x: F.mse_loss(out * 2 * (x[:, :2] > 0.5), x[:, :2]) * out.detach().abs().max(),
    lambda out, x: aligned(out.log_softmax(1)),
    lambda out, x: aligned(out.log_softmax(1) - torch.tensor([-0.3, -1.0])),  # less a prior
    lambda out, x: aligned(out - out.logsumexp(1, keepdim=True)),
    lambda out, x: (out.softmax(0) * x[:, :2]).sum(0).square().sum(),  # pooled over places
    lambda out, x: F.mse_loss(out.softmax(0), shares(x).softmax(0)),  # shares of the places
    lambda out, x: F.cross_entropy(out[0], labels(x)[0]),  # one sample without a batch
    lambda out, x: sum(
        (-(out @ out.T).log_softmax(dim).diagonal().mean() for dim in (0, 1)), out.new_zeros(())
    ),
    lambda out, x: F.nll_loss((out @ out.T).log_softmax(0), torch.arange(16)),
]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    ("rule", "loss"), [(rule, loss) for rule, some in SPOILED.items() for loss in some]
)
def test_a_loss_that_gets_the_wrong_thing_is_named_at_the_first_step(
    rule: str, loss: Loss, tmp_path: Path
) -> None:
    model = small()
    alerts, _ = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=3, loss=loss)
    assert (rule, 0, ("(root)",)) in alerts
    assert {one[0] for one in alerts if not one[0].startswith("nonfinite")} == {rule}


def test_the_targets_of_a_divergence_that_are_logits_are_described(tmp_path: Path) -> None:
    model = small()
    train_it(
        *(tmp_path, model, [SGD(model.parameters(), 1e-3)]),
        loss=lambda out, x: F.kl_div(
            out.log_softmax(1), (9 * x[:, :2] - 3).round(), reduction="batchmean"
        ),
        n_steps=3,
    )
    (first, *_) = nbp.open_run(tmp_path / "a.zarr").alerts
    assert "kl_div takes probabilities as targets, and gets numbers from -3 to 5" in first.text


@pytest.mark.parametrize("n_left", [0, 1])
def test_a_batch_of_which_all_targets_are_ignored_is_named(n_left: int, tmp_path: Path) -> None:
    count = itertools.count()

    def loss(out: Tensor, x: Tensor) -> Tensor:
        y = labels(x)
        if next(count) == 7:
            y[n_left:] = -1
        return F.cross_entropy(out, y, ignore_index=-1)

    model = small()
    alerts, _ = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=9, loss=loss)
    named = ("all_targets_ignored", 7, ("(root)",))
    assert (named in alerts) == (n_left == 0)
    assert alerts == set() or n_left == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_sorted", [True, False])
def test_batches_of_one_class_each_are_a_remark(is_sorted: bool, tmp_path: Path) -> None:
    model, count = small(), itertools.count()

    def loss(out: Tensor, x: Tensor) -> Tensor:
        y = torch.full((16,), next(count) // 8 % 2)
        return F.cross_entropy(out, y if is_sorted else torch.cat([y[1:], 1 - y[:1]]))

    found = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=120, loss=loss)
    assert {one[0] for one in found[1]} & {"sorted_batches"} == (
        {"sorted_batches"} if is_sorted else set()
    )


def triplets(order: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return 16 samples, each with one of the same kind and one of the other."""
    kinds = torch.arange(16) % 2
    here, there = (
        0.3 * torch.randn(16, 8) + torch.stack([k, 1 - k], 1).repeat(1, 4)
        for k in (kinds, 1 - kinds)
    )
    given = {"a": here, "p": here.roll(2, 0), "n": there}
    first, second, third = (given[name] for name in order)
    return first, second, third


@pytest.mark.parametrize(
    ("order", "distance", "named"),
    [
        ("apn", nn.TripletMarginLoss(), None),
        ("anp", nn.TripletMarginLoss(), 10),
        ("anp", nn.TripletMarginWithDistanceLoss(margin=0.2), 10),
        ("anp", lambda a, p, n: _hardest(a, p, n), None),
        ("apn", lambda a, p, n: _of_squares(a, p, n, torch.sum), None),
        ("anp", lambda a, p, n: _of_squares(a, p, n, torch.sum), 10),
        ("anp", lambda a, p, n: _of_squares(a, p, n, torch.mean), 10),
        ("anp", lambda a, p, n: _of_squares(a, p, n, torch.sum, F.relu), 10),
    ],
)
def test_triplets_whose_positive_and_negative_are_exchanged_are_a_remark(
    order: str,
    distance: Callable[[Tensor, Tensor, Tensor], Tensor],
    named: int | None,
    tmp_path: Path,
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=[], budget=None) as run:
        for _ in range(14):
            found = distance(*(model(one) for one in triplets(order)))
            optimizer.zero_grad()
            found.backward()
            optimizer.step()
    steps = [one.step for one in run.remarks if one.rule == "triplet_order"]
    assert steps == ([] if named is None else [named])


def _clamp(values: Tensor) -> Tensor:
    return values.clamp(min=0)


def _of_squares(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    reduced: Callable[[Tensor, int], Tensor],
    hinge: Callable[[Tensor], Tensor] = _clamp,
) -> Tensor:
    """Return the loss of squared distances, as for faces."""
    near, far = ((anchor - one) ** 2 for one in (positive, negative))
    return hinge(reduced(near, -1) - reduced(far, 1) + 0.2).mean()


def _hardest(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """Return the loss of the hardest pairs of a batch, which are in that order at first."""
    far = torch.cdist(anchor, positive).amax(1)
    return (far - torch.cdist(anchor, negative).amin(1) + 1).relu().mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "distance", [F.triplet_margin_loss, lambda a, p, n: _of_squares(a, p, n, torch.sum, F.relu)]
)
def test_triplets_that_are_no_nearer_after_many_steps_are_a_remark(
    distance: Callable[[Tensor, Tensor, Tensor], Tensor], tmp_path: Path
) -> None:
    def told(learns: bool) -> set[str]:
        model = small()
        optimizer = Adam(model.parameters(), lr=3e-2)
        with nbp.watch(model, store=tmp_path / f"{learns}.zarr", probes=[], budget=None) as run:
            for _ in range(320):
                some = triplets("apn" if learns else "npa")
                found = distance(*(model(one) for one in some))
                optimizer.zero_grad()
                found.backward()
                optimizer.step()
        return {one.rule for one in run.remarks}

    assert told(learns=True) == set()
    assert told(learns=False) == {"triplet_order"}


@pytest.mark.parametrize("loss", HEALTHY)
def test_a_loss_that_is_well_made_is_not_named(loss: Loss, tmp_path: Path) -> None:
    model = small()
    found = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=3, loss=loss)
    assert found == (set(), set())


class Attack(nn.Module):
    """Adds numbers to the input of a network, which make its answers worse."""

    def __init__(self) -> None:
        super().__init__()
        self.added, self.network = nn.Parameter(torch.zeros(8)), small()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.network(x + self.added.tanh())
        return out


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_loss_that_an_attack_makes_worse_is_remarked(is_frozen: bool, tmp_path: Path) -> None:
    model = Attack()
    model.network.requires_grad_(not is_frozen)
    alerts, remarks = train_it(
        tmp_path,
        model,
        [SGD([model.added] if is_frozen else model.parameters(), 1e-3)],
        n_steps=3,
        loss=lambda out, x: -F.cross_entropy(out, labels(x)),
    )
    named = {("negated_loss", 0, ("(root)",))}
    assert (alerts, remarks) == ((set(), named) if is_frozen else (named, set()))


class Added(nn.Module):
    """Numbers that are added to the input of a network."""

    def __init__(self) -> None:
        super().__init__()
        self.added = nn.Parameter(torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.added.tanh()


@pytest.mark.parametrize("is_frozen", [True, False])
def test_the_loss_of_an_attack_that_is_watched_alone_is_remarked(
    is_frozen: bool, tmp_path: Path
) -> None:
    network = small().requires_grad_(not is_frozen)
    model = Added()
    alerts, remarks = train_it(
        tmp_path,
        model,
        [SGD(model.parameters(), 1e-3)],
        n_steps=3,
        loss=lambda out, x: -F.cross_entropy(network(out), labels(x)),
    )
    assert (alerts, remarks) == (set(), {("negated_loss", 0, ("(root)",))})


@pytest.mark.parametrize(
    "model",
    [
        nn.Linear(8, 8),
        nn.Linear(8, 8, bias=False),
        nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv1d(1, 1, 1, bias=False), nn.Flatten()),
    ],
)
def test_a_negated_loss_of_layers_is_an_alert_however_they_are_made(
    model: nn.Module, tmp_path: Path
) -> None:
    """Also where another network, as a classifier of features, follows them."""
    network = small()
    alerts, _ = train_it(
        tmp_path,
        model,
        [SGD([*model.parameters(), *network.parameters()], 1e-3)],
        n_steps=3,
        loss=lambda out, x: -F.cross_entropy(network(out), labels(x)),
    )
    assert ("negated_loss", 0, ("(root)",)) in alerts


class Judge(nn.Module):
    """Deep layers, and two answers."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(12)]
        self.body, self.classes, self.code = (
            nn.Sequential(*layers),
            nn.Linear(8, 2),
            nn.Linear(8, 2),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.body(x)
        return self.classes(seen), self.code(seen)


@pytest.mark.parametrize("is_spoiled", [True, False])
def test_a_mistake_in_one_of_several_terms_is_named(is_spoiled: bool, tmp_path: Path) -> None:
    def loss(out: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
        classes = out[0].softmax(1) if is_spoiled else out[0]
        return F.cross_entropy(classes, labels(x)) + 0.1 * F.mse_loss(out[1], x[:, :2])

    torch.manual_seed(0)
    model: Any = Judge()
    optimizer = SGD(model.parameters(), 1e-3)
    alerts, _ = train_it(tmp_path, model, [optimizer], n_steps=3, loss=loss)  # type: ignore[arg-type]
    assert {one[0] for one in alerts} == ({"activation_before_loss"} if is_spoiled else set())


@pytest.mark.parametrize("is_spoiled", [True, False])
def test_a_mistake_in_a_later_pass_of_a_step_is_named(is_spoiled: bool, tmp_path: Path) -> None:
    model = small()

    def second_pass(step: int) -> None:
        x = torch.rand(16, 8)
        out = model(x).softmax(1) if is_spoiled else model(x)
        F.cross_entropy(out, labels(x)).backward()

    optimizer = SGD(model.parameters(), 1e-3)
    alerts, _ = train_it(tmp_path, model, [optimizer], n_steps=3, before_update=second_pass)
    assert alerts == ({("activation_before_loss", 0, ("(root)",))} if is_spoiled else set())


def test_passes_of_two_alike_generators_are_no_layers_made_in_the_forward(tmp_path: Path) -> None:
    judge, makers = small(), [nn.Linear(8, 8) for _ in range(2)]

    def second_pass(step: int) -> None:
        judge(makers[1](torch.rand(16, 8))).square().mean().backward()

    first = nn.ModuleList(makers)
    optimizer = SGD([*judge.parameters(), *first.parameters()], 1e-3)
    loss: Loss = lambda out, x: judge(makers[0](x)).square().mean()  # noqa: E731 - as in the list
    found = train_it(tmp_path, judge, [optimizer], n_steps=12, loss=loss, before_update=second_pass)
    assert "layers_made_in_forward" not in {one[0] for some in found for one in some}


class Hidden(nn.Module):
    """Layers in a container, registered or not."""

    def __init__(self, container: Callable[[list[nn.Module]], Any]) -> None:
        super().__init__()
        self.hidden = container([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.out = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        layers = self.hidden.values() if isinstance(self.hidden, dict) else self.hidden
        for layer in layers:
            x = layer(x).relu()
        out: Tensor = self.out(x)
        return out


@pytest.mark.parametrize(
    ("container", "named"),
    [
        (list, True),
        (tuple, True),
        (lambda layers: dict(enumerate(layers)), True),
        (nn.ModuleList, False),
        (lambda layers: nn.Sequential(*layers), False),
    ],
)
def test_layers_in_a_plain_container_are_named(
    container: Callable[[list[nn.Module]], Any], named: bool, tmp_path: Path
) -> None:
    model = Hidden(container)
    alerts, _ = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=3)
    assert alerts == ({("unregistered_layers", 0, ("(root)",))} if named else set())


class Making(nn.Module):
    """Uses a layer that is made once, or in each forward."""

    def __init__(self, once: bool) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.made = nn.Linear(8, 2) if once else None

    def forward(self, x: Tensor) -> Tensor:
        layer = self.made if self.made is not None else nn.Linear(8, 2)
        out: Tensor = layer(self.first(x))
        return out


@pytest.mark.parametrize("once", [True, False])
def test_a_layer_that_is_made_in_each_forward_is_named(once: bool, tmp_path: Path) -> None:
    model = Making(once)
    alerts, _ = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=4)
    assert alerts == (set() if once else {("layers_made_in_forward", 1, ("(root)",))})


def test_a_second_network_and_inputs_that_learn_are_no_forgotten_layers(tmp_path: Path) -> None:
    model, critic = small(), nn.Linear(2, 1)
    noise = torch.zeros(8, requires_grad=True)

    def loss(out: Tensor, x: Tensor) -> Tensor:
        found: Tensor = critic(out + noise[:2]).square().mean()
        return found

    found = train_it(tmp_path, model, [SGD(model.parameters(), 1e-3)], n_steps=12, loss=loss)
    assert found == (set(), set())


@pytest.mark.slow
@pytest.mark.parametrize("is_shuffled", [True, False])
def test_a_loss_that_stays_at_that_of_guessing_is_named(is_shuffled: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = Adam(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", "default", budget=None) as run:
        for _ in range(260):
            x = torch.randn(64, 8)
            y = x[:, :4].argmax(1)
            loss = F.cross_entropy(model(x), y[torch.randperm(64)] if is_shuffled else y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert [one.rule for one in run.alerts] == (["loss_at_chance"] if is_shuffled else [])
    if is_shuffled:
        assert "among 4 classes, 1.39" in run.alerts[0].text


@pytest.mark.slow
def test_a_contrast_that_stays_at_chance_is_a_remark(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, queue = nn.Linear(8, 8), F.normalize(torch.randn(63, 8), dim=1)
    with nbp.watch(model, None, tmp_path / "a.zarr", "default", budget=None) as run:
        optimizer = SGD(model.parameters(), lr=1e-6)
        for _ in range(260):
            seen = F.normalize(model(torch.randn(16, 8)), dim=1)
            same = (seen * seen.detach().roll(1, 0)).sum(1, keepdim=True)
            loss = F.cross_entropy(torch.cat([same, seen @ queue.T], 1), only_zero(seen))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert "loss_at_chance" in {one.rule for one in run.remarks}
    assert "loss_at_chance" not in {one.rule for one in run.alerts}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["other classes", "the same classes"])
def test_a_loss_that_jumps_with_classes_that_are_all_new_may_be_meant(
    kind: str, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = Adam(model.parameters(), lr=1e-2)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", "default", budget=None) as run:
        for step in range(160):
            x = torch.randn(32, 8)
            y = (x[:, 0] > 0).long()
            if step == 129:
                run.flush()  # the usual losses are learned from recorded rows
            if step >= 130:
                y = y + 2 if kind == "other classes" else 1 - y
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.log(loss=loss.detach())
    of_jump = [{one.rule for one in some} & {"loss_spike"} for some in (run.alerts, run.remarks)]
    named = {"loss_spike"}
    assert of_jump == ([set(), named] if kind == "other classes" else [named, set()])


def test_a_loss_of_nothing_and_gradients_of_zero_are_named(tmp_path: Path) -> None:
    def trained(name: str, loss: Loss) -> set[str]:
        model = small()
        optimizer = SGD(model.parameters(), 1e-3)
        return {one[0] for one in train_it(tmp_path / name, model, [optimizer], loss=loss)[0]}

    assert trained("empty", lambda out, x: (out * 0).sum()) == {"nothing_to_learn"}
    assert trained("flat", lambda out, x: out.clamp(9, 10).mean()) == {"every_gradient_zero"}
    assert trained("healthy", lambda out, x: (out - 1).square().mean()) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "named"), [("wrong sign", True), ("likelihood", False), ("clipped critic", False)]
)
def test_a_loss_without_a_floor_is_named_and_a_likelihood_is_not(
    kind: str, named: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = Adam(model.parameters(), lr=1e-2)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", "default", budget=None) as run:
        for _ in range(220):
            x = torch.randn(64, 8)
            mean, scale = model(x).unbind(1)
            if kind == "wrong sign":
                loss = mean.mean() * 3
            elif kind == "likelihood":  # of targets that the network can copy
                loss = -torch.distributions.Normal(mean, scale.exp()).log_prob(x[:, 0]).mean()
            else:
                loss = 300 * mean.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if kind == "clipped critic":
                with torch.no_grad():
                    for weight in model.parameters():
                        weight.clamp_(-0.3, 0.3)
    assert ("runaway_loss" in {one.rule for one in run.alerts}) == named


@pytest.mark.parametrize("minus", [lambda loss: -1 * loss, lambda loss: loss / -1.0])
def test_a_loss_times_minus_1_is_named_once_it_is_no_reward(
    minus: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    def negated(out: Tensor, x: Tensor) -> Tensor:
        return minus(F.cross_entropy(out, labels(x)))

    def rewarded(out: Tensor, x: Tensor) -> Tensor:
        return (-1 if next(count) < 5 else 2) * F.cross_entropy(out, labels(x))

    count = itertools.count()
    assert ("negated_loss", 10) in steps_of(tmp_path / "a", negated)
    assert steps_of(tmp_path / "b", rewarded) == set()


def steps_of(folder: Path, loss: Loss) -> set[tuple[str, int]]:
    model = small()
    alerts, _ = train_it(folder, model, [SGD(model.parameters(), 1e-3)], n_steps=12, loss=loss)
    return {(rule, step) for rule, step, _ in alerts}


class LowRank(nn.Module):
    """Adds a product of two narrow layers to a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(8, 8).requires_grad_(False)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.base(x) + 2.0 * self.up(self.down(x))
        return out


class InSequence(nn.Module):
    """Applies linear layers to each token of a sequence of one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 6), nn.Linear(6, 2, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x[:, None])
        return out.flatten(1)


@pytest.mark.parametrize(
    ("build", "n"),
    [
        (lambda: nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2)), 2),
        (
            lambda: nn.Sequential(nn.Linear(8, 4), nn.Identity(), nn.Linear(4, 4), nn.Linear(4, 2)),
            3,
        ),
        (InSequence, 2),
        (lambda: nn.Linear(8, 2), 0),
        (lambda: nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2)), 0),
        (lambda: nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 8)), 0),  # a low rank
        (LowRank, 0),
    ],
)
def test_linear_layers_with_nothing_between_them_are_remarked(
    build: Callable[[], nn.Module], n: int, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = build()
    alerts, remarks = train_it(tmp_path, model, [SGD(model.parameters(), lr=0.01)], n_steps=3)
    assert (alerts, remarks) == (set(), {("affine_network", 0, ("(root)",))} if n else set())
    if n:
        (remark,) = nbp.open_run(tmp_path / "a.zarr").remarks
        assert f"{n} linear layers one after the other" in remark.text


def only_zero(x: Tensor) -> Tensor:
    return torch.zeros(len(x), dtype=torch.long)


def rarely_one(x: Tensor) -> Tensor:
    return (x[:, 0] > 0.9).long()


@pytest.mark.parametrize(
    ("wanted", "rate", "named"),
    [
        (only_zero, 0.5, True),
        (labels, 0.5, False),
        (rarely_one, 0.5, False),
        (only_zero, 1e-4, False),  # as in contrast, where the first pair is the right one
    ],
)
def test_targets_of_one_class_that_a_network_has_learned_are_named(
    wanted: Callable[[Tensor], Tensor], rate: float, named: bool, tmp_path: Path
) -> None:
    model = small()
    alerts, _ = train_it(
        tmp_path,
        model,
        [SGD(model.parameters(), lr=rate)],
        n_steps=120,
        loss=lambda out, x: F.cross_entropy(out, wanted(x)),
    )
    assert ("constant_targets" in {rule for rule, _, _ in alerts}) == named


def test_of_a_list_whose_first_is_the_right_one_all_targets_may_be_0(tmp_path: Path) -> None:
    model = small()

    def loss(out: Tensor, x: Tensor) -> Tensor:
        chosen, rejected = out[:, :1], out[:, 1:] * 0.5
        return F.cross_entropy(torch.cat([chosen, rejected], 1) / 0.5, only_zero(x))

    optimizer = SGD(model.parameters(), lr=0.5)
    assert train_it(tmp_path, model, [optimizer], n_steps=120, loss=loss)[0] == set()


def test_of_candidates_of_each_sample_the_first_may_be_the_right_one(tmp_path: Path) -> None:
    model = small()

    def loss(out: Tensor, x: Tensor) -> Tensor:
        candidates = torch.stack([out, -out], 1).detach()
        return F.cross_entropy((candidates @ out[:, :, None])[..., 0] * 20, only_zero(x))

    optimizer = SGD(model.parameters(), lr=0.5)
    assert train_it(tmp_path, model, [optimizer], n_steps=120, loss=loss)[0] == set()


def test_a_perturbation_may_be_learned_for_one_class(tmp_path: Path) -> None:
    model = Attack()
    found = train_it(
        tmp_path,
        model,
        [SGD([model.added], lr=20.0)],
        n_steps=120,
        loss=lambda out, x: F.cross_entropy(20 * out, only_zero(x)),
    )
    alerts, remarks = ({rule for rule, _, _ in some} for some in found)
    assert "constant_targets" not in alerts
    assert "constant_targets" in remarks


def test_targets_that_are_left_out_are_of_no_class(tmp_path: Path) -> None:
    def loss(out: Tensor, x: Tensor) -> Tensor:
        return F.cross_entropy(out, only_zero(x).where(x[:, 0] > 0.5, -100))

    model = small()
    optimizer = SGD(model.parameters(), lr=0.5)
    alerts, _ = train_it(tmp_path, model, [optimizer], n_steps=120, loss=loss)
    assert {rule for rule, _, _ in alerts} == {"constant_targets"}
    assert "are class 0, and" in nbp.open_run(tmp_path / "a.zarr").alerts[0].text


@pytest.mark.parametrize("is_random_at_first", [True, False])
def test_a_contrast_with_keys_that_are_random_at_first_may_rise(
    is_random_at_first: bool, tmp_path: Path
) -> None:
    model, count = small(), itertools.count()

    def contrast(out: Tensor, x: Tensor) -> Tensor:
        seen, n = F.normalize(out, dim=1), next(count)
        keys = -seen.detach() if is_random_at_first and not n else seen.detach().roll(1, 0)
        same = (seen * seen.detach()).sum(1, keepdim=True)
        scores = torch.cat([same, (1 + 0.1 * n) * (seen @ keys.T)], 1) / 0.07
        return F.cross_entropy(scores, only_zero(x))

    found = train_it(tmp_path, model, [SGD(model.parameters(), lr=1.0)], n_steps=9, loss=contrast)
    alerts, remarks = ({rule for rule, _, _ in some} for some in found)
    assert ("early_divergence" in alerts) != is_random_at_first
    assert ("early_divergence" in remarks) == is_random_at_first
