"""Who trains: each fact on a training that has it, and silence on its healthy twin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from notebook_probe.run.facts.parameters import LATE, RARELY, SELDOM
from tests.run.facts.trained import Said, small, train_it


def test_a_head_that_came_after_the_optimizer_is_named(tmp_path: Path) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=0.1)
    model[2] = nn.Linear(8, 2)
    alerts, _ = train_it(tmp_path, model, [optimizer])
    assert alerts == {("not_in_optimizer", 20, ("2",))}


@pytest.mark.parametrize("is_held", [True, False])
def test_a_head_that_is_replaced_midway_is_named_unless_an_optimizer_gets_it(
    is_held: bool, tmp_path: Path
) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=0.1)

    def then(step: int) -> None:
        if step == 10:
            model[2] = nn.Linear(8, 2)
            if is_held:
                optimizer.add_param_group({"params": [*model[2].parameters()]})

    alerts, _ = train_it(tmp_path, model, [optimizer], n_steps=40, then=then)
    assert alerts == (set() if is_held else {("not_in_optimizer", 30, ("2",))})


def test_layers_before_all_trained_ones_may_be_left_out(tmp_path: Path) -> None:
    model = small()
    optimizer = SGD(model[2].parameters(), lr=0.1)
    assert train_it(tmp_path, model, [optimizer]) == (set(), set())


@pytest.mark.parametrize("n_held", [1, 2])
def test_layers_behind_the_first_one_alone_may_be_left_out(n_held: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(4)], nn.Tanh())
    optimizer = SGD(model[:n_held].parameters(), lr=0.1)
    alerts, remarks = train_it(tmp_path, model, [optimizer])
    named = {("not_in_optimizer", 20, tuple(str(i) for i in range(n_held, 4)))}
    remarks = {one for one in remarks if one[0] != "affine_network"}
    assert (alerts, remarks) == ((set(), named) if n_held == 1 else (named, set()))
    if n_held == 1:
        texts = [one.text for one in nbp.open_run(tmp_path / "a.zarr").remarks]
        assert any("they hold the first layer alone, as where a prompt" in one for one in texts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["forgotten", "added", "of another optimizer", "still frozen"])
def test_layers_that_are_no_longer_frozen_and_in_no_optimizer_are_named(
    kind: str, tmp_path: Path
) -> None:
    model = small()
    model[0].requires_grad_(False)
    optimizer = SGD(model[2].parameters(), lr=0.01)
    optimizers: list[Optimizer] = [optimizer]

    def then(step: int) -> None:
        if step == 70 and kind != "still frozen":
            model[0].requires_grad_(True)
            if kind == "added":
                optimizer.add_param_group({"params": [*model[0].parameters()]})
            elif kind == "of another optimizer":
                optimizers.append(SGD(model[0].parameters(), lr=0.01))

    alerts, _ = train_it(tmp_path, model, optimizers, n_steps=160, then=then)
    assert {one[0] for one in alerts} == ({"not_in_optimizer"} if kind == "forgotten" else set())
    if kind == "forgotten":
        ((_, step, modules),) = alerts
        assert modules == ("0",)
        assert 70 + 16 < step <= 70 + 64 + 16, "two looks, the first one of which may be late"


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_gradient_that_is_left_from_an_earlier_training_says_nothing_of_this_one(
    is_cut: bool, tmp_path: Path
) -> None:
    class Distilled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.student, self.teacher = small(), small()

        def forward(self, x: Tensor) -> Tensor:
            with torch.set_grad_enabled(not is_cut):
                taught = self.teacher(x)
            return torch.as_tensor(self.student(x) - taught)

    model = Distilled()
    model.teacher(torch.ones(2, 8)).sum().backward()
    alerts, _ = train_it(tmp_path, model, [SGD(model.student.parameters(), lr=0.1)])
    named = {("not_in_optimizer", 20, ("teacher.0", "teacher.2"))}
    assert alerts == (set() if is_cut else named)


def test_a_gradient_that_is_left_can_be_swapped_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)
    model = small()
    model(torch.ones(2, 8)).sum().backward()
    [left, *_] = [one.grad for one in model.parameters() if one.grad is not None]
    memory = StorageWeakRef(left.untyped_storage())
    del left, _
    with nbp.watch(model, SGD(model.parameters(), lr=0.1), tmp_path / "run.zarr", probes=[]):
        model(torch.ones(2, 8)).sum()
        model.to(torch.float64)  # which torch refuses of a tensor with a weak reference
        model.zero_grad()
        assert memory.expired()


@pytest.mark.parametrize(("to_none", "named"), [(True, False), (False, True)])
def test_a_frozen_layer_that_its_old_gradient_still_moves_is_named(
    to_none: bool, named: bool, tmp_path: Path
) -> None:
    model = small()

    def then(step: int) -> None:
        if step == 10:
            model[0].requires_grad_(False)

    alerts, remarks = train_it(
        tmp_path, model, [SGD(model.parameters(), lr=0.05)], then=then, to_none=to_none
    )
    assert alerts == ({("frozen_but_moving", 12, ("0",))} if named else set())
    assert remarks == {("frozen_late", 12, ("0",))}, "it was trained until step 10"


@pytest.mark.parametrize("late", [41, 303, 805])
def test_a_layer_that_is_frozen_later_is_found_after_a_sixteenth_of_the_updates_at_most(
    late: int, tmp_path: Path
) -> None:
    model = small()

    def then(step: int) -> None:
        if step == late:
            model[0].requires_grad_(False)

    optimizer = SGD(model.parameters(), lr=0.001)
    _, remarks = train_it(tmp_path, model, [optimizer], n_steps=late + 40, then=then)
    assert {(rule, places) for rule, _, places in remarks} == {("frozen_late", ("0",))}
    [step] = [step for _, step, _ in remarks]
    assert 0 <= step - late <= min(max(late // LATE, RARELY), SELDOM)


@pytest.mark.parametrize("since", ["the beginning", "its own optimizer's turn"])
def test_a_layer_that_is_frozen_whenever_its_optimizer_steps_was_never_trained(
    since: str, tmp_path: Path
) -> None:
    model = small()
    optimizers = [SGD(model[0].parameters(), lr=0.05), SGD(model[2].parameters(), lr=0.05)]

    def then(step: int) -> None:
        if since == "the beginning":
            model[0].requires_grad_(False)
        else:  # as of the two networks of a GAN
            model[0].requires_grad_(step % 2 == 0)

    assert train_it(tmp_path, model, optimizers, then=then) == (set(), set())


class Sparing(SGD):
    """Applies one of so many updates; none once it has stopped."""

    def __init__(self, model: nn.Module, every: int, stops: int = 10**9) -> None:
        super().__init__(model.parameters(), lr=0.05)
        self.every, self.stops, self.n = every, stops, 0

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        self.n += 1
        if self.n <= self.stops and self.n % self.every == 0:
            super().step()


def test_updates_that_write_to_no_parameter_are_named(tmp_path: Path) -> None:
    model = small()
    alerts, remarks = train_it(tmp_path, model, [Sparing(model, 1, stops=12)], n_steps=50)
    ((rule, step, modules),) = alerts
    assert (rule, modules) == ("step_without_effect", ("0", "2"))
    assert remarks == set(), "of an optimizer that has written so few times it is uncertain"
    assert 12 + 16 <= step <= 12 + 2 * 16
    assert (
        "written to none of them in 16 updates" in nbp.open_run(tmp_path / "a.zarr").alerts[0].text
    )


def test_the_second_update_that_writes_nothing_after_many_that_did_is_a_remark(
    tmp_path: Path,
) -> None:
    model = small()
    said = train_it(tmp_path, model, [Sparing(model, 1, stops=30)], n_steps=60)
    named = "step_without_effect", ("0", "2")
    assert [[(rule, modules) for rule, _, modules in one] for one in said] == [[named], [named]]
    ((_, step, _),) = said[1]
    assert step == 31, "the update of step 30 is the first that writes nothing"


class Scaled(SGD):
    """Leaves out updates; a gradient scaler says so by an attribute."""

    leaves_out = False

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        if not self.leaves_out:
            super().step()


@pytest.mark.parametrize("kind", ["one in a while", "a scaler", "no finite gradient"])
def test_updates_that_are_left_out_for_a_reason_are_no_remark(kind: str, tmp_path: Path) -> None:
    model = small()
    optimizer = Scaled(model.parameters(), lr=0.05)

    def before_update(step: int) -> None:
        optimizer.leaves_out = step in (30, 34, 41, 50) or (
            kind != "one in a while" and 30 <= step < 34
        )
        if kind == "a scaler" and optimizer.leaves_out:
            optimizer.found_inf = torch.ones(())  # type: ignore[attr-defined]
        else:
            vars(optimizer).pop("found_inf", None)
        if kind == "no finite gradient" and optimizer.leaves_out:
            model[0].weight.grad.fill_(math.inf)  # type: ignore[union-attr, operator]

    found = train_it(tmp_path, model, [optimizer], n_steps=60, before_update=before_update)
    assert "step_without_effect" not in str(found)


def test_an_optimizer_that_has_converged_is_fine(tmp_path: Path) -> None:
    model = nn.Linear(8, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), tolerance_grad=1e-4)
    x = torch.rand(16, 8)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (model(x) - x[:, :2]).square().mean()
        loss.backward()
        return loss

    with nbp.watch(model, store=tmp_path / "a.zarr", budget=None) as run:
        for _ in range(60):
            optimizer.step(closure)
    assert {one.rule for one in [*run.alerts, *run.remarks]} == {"repeated_batch"}


@pytest.mark.parametrize("every", [2, 4, 12])
def test_an_optimizer_that_gathers_a_few_gradients_is_fine(every: int, tmp_path: Path) -> None:
    model = small()
    assert train_it(tmp_path, model, [Sparing(model, every)], n_steps=80) == (set(), set())


def test_updates_that_torch_does_not_count_are_seen_by_their_values(tmp_path: Path) -> None:
    class Uncounted(SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            for one in self.param_groups[0]["params"]:
                one.data.sub_(0.05 * one.grad)

    model = small()
    optimizer = Uncounted(model.parameters(), lr=0.05)
    assert train_it(tmp_path, model, [optimizer], n_steps=60) == (set(), set())


def test_a_network_of_which_only_norms_train_is_named_and_one_with_a_head_is_not(
    tmp_path: Path,
) -> None:
    def trained(head: bool) -> tuple[Said, Said]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        for place in (0, 3):
            model[place].requires_grad_(head and place == 3)
        held = [one for one in model.parameters() if one.requires_grad]
        return train_it(tmp_path / str(head), model, [SGD(held, lr=0.01)])

    assert trained(head=True) == (set(), set())
    alerts, remarks = trained(head=False)
    assert alerts == {("only_norms_train", 20, ("(root)",))}
    assert remarks == {("only_norms_train", 1, ("(root)",))}, "a remark as soon as one is known"


def test_updates_that_half_precision_rounds_away_are_named(tmp_path: Path) -> None:
    def trained(dtype: torch.dtype) -> Said:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2)).to(dtype)
        nn.init.constant_(model[0].weight, 1.0)  # type: ignore[arg-type]
        folder = tmp_path / str(dtype)
        return train_it(folder, model, [SGD(model.parameters(), lr=1e-6)], n_steps=60)[0]

    found = trained(torch.bfloat16)
    assert ("step_without_effect", 50, ("0", "1")) in found
    assert not {one for one in trained(torch.float64) if one[0] == "step_without_effect"}


class Branches(nn.Module):
    """Two branches, of which one may be cut off from the loss."""

    def __init__(self, cut: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.left, self.right, self.head = (nn.Linear(8, 8) for _ in range(3))
        self.cut = cut

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.left(x) + self.cut(self.right(x)))
        return out


class Pooled(nn.Module):
    """A body, and a pooler whose result is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.pooler = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x)
        self.pooler(out).tanh()
        return out


class Unused(nn.Module):
    """As a last layer of a heterogeneous graph: the first of two branches is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.other, self.last = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        found = self.first(x).relu()
        self.other(found)
        out: Tensor = self.last(found)
        return out


def no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        return x + 1


def all_of(model: nn.Module) -> Sequence[Optimizer]:
    return [Adam(model.parameters(), lr=1e-3)]


@pytest.mark.parametrize("cut", [Tensor.detach, no_grad, lambda x: x.argmax(1, True).float()])
def test_a_layer_that_is_cut_off_is_named_with_the_line(
    cut: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    model = Branches(cut)
    with nbp.watch(model, store=tmp_path / "a.zarr") as run:
        optimizer = SGD(model.parameters(), lr=0.1)
        for _ in range(25):
            optimizer.zero_grad()
            model(torch.rand(16, 8)).square().mean().backward()
            optimizer.step()
    (alert,) = run.alerts
    assert (alert.rule, alert.step, alert.modules) == ("cut_off", 20, ("right",))
    assert "cut at test_parameters.py:" in alert.text


@pytest.mark.parametrize("build", [Pooled, Unused])
def test_a_layer_whose_output_nobody_uses_may_be_meant(
    build: Callable[[], nn.Module], tmp_path: Path
) -> None:
    model = build()
    alerts, remarks = train_it(tmp_path, model, all_of(model))
    unused = "pooler" if build is Pooled else "other"
    assert (alerts, remarks) == (set(), {("unused_output", 20, (unused,))})


def test_a_layer_whose_gradient_is_taken_away_may_be_meant(tmp_path: Path) -> None:
    model = small()

    def before_update(step: int) -> None:
        for one in model[2].parameters():
            one.grad = None

    alerts, remarks = train_it(tmp_path, model, all_of(model), before_update=before_update)
    assert (alerts, remarks) == (set(), {("gradient_taken_away", 20, ("2",))})


@pytest.mark.parametrize("order", ["backward clear step", "clear step backward"])
def test_gradients_that_are_cleared_before_each_update_are_named(
    order: str, tmp_path: Path
) -> None:
    assert rules_of_loop(order, tmp_path) == {"gradients_cleared_early"}


@pytest.mark.parametrize("order", ["clear backward step", "backward step clear"])
def test_gradients_that_are_cleared_after_each_update_are_fine(order: str, tmp_path: Path) -> None:
    assert rules_of_loop(order, tmp_path) == set()


def rules_of_loop(order: str, folder: Path) -> set[str]:
    """Return the rules of all findings in a loop that does things in this order."""
    model = small()
    optimizer = SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, store=folder / "a.zarr", budget=None) as run:
        for _ in range(25):
            x = torch.rand(16, 8)
            loss = (model(x) - x[:, :2]).square().mean()
            acts = {
                "clear": optimizer.zero_grad,
                "backward": loss.backward,
                "step": optimizer.step,
            }
            for act in order.split():
                acts[act]()
    return {one.rule for one in [*run.alerts, *run.remarks]}


def test_a_model_that_the_loss_does_not_reach_at_all_is_named(tmp_path: Path) -> None:
    model, other = small(), nn.Linear(2, 1)
    with nbp.watch(model, store=tmp_path / "a.zarr") as run:
        optimizers = SGD(model.parameters(), lr=0.1), SGD(other.parameters(), lr=0.1)
        for _ in range(25):
            other(model(torch.rand(16, 8)).detach()).square().mean().backward()
            for one in optimizers:
                one.step()
                one.zero_grad()
    assert {(one.rule, one.modules) for one in run.alerts} == {("cut_off", ("0", "2"))}


@pytest.mark.parametrize("cut", [lambda x: x * 0, lambda x: x])
def test_a_branch_with_a_gradient_is_not_cut_off(
    cut: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    model = Branches(cut)
    each = [SGD(one.parameters(), lr=0.1) for one in (model.left, model.right, model.head)]
    assert train_it(tmp_path, model, each) == (set(), set())


def test_a_layer_of_rate_zero_is_meant_to_stay(tmp_path: Path) -> None:
    model = Branches(Tensor.detach)
    groups = [{"params": model.right.parameters(), "lr": 0.0}]
    rest = [{"params": [*model.left.parameters(), *model.head.parameters()]}]
    assert train_it(tmp_path, model, [SGD(groups + rest, lr=0.1)]) == (set(), set())


def test_weights_outside_of_the_host_are_not_read(tmp_path: Path) -> None:
    """A look at them would wait for the device; on "meta" it raises."""
    model = nn.Linear(2, 2, device="meta")
    optimizer = SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, optimizer, tmp_path / "a.zarr", probes=[]) as run:
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.ones(3, 2, device="meta")).sum().backward()
            optimizer.step()
    assert [event.text for event in run.events if event.kind == "error"] == []


def zeroed(*layers: int) -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))
    for layer in layers:
        for one in model[layer].parameters():
            nn.init.zeros_(one)
    return model


def constant() -> nn.Sequential:
    model = zeroed(0, 2, 4)
    for layer in (0, 2, 4):
        nn.init.constant_(model[layer].weight, 0.1)  # type: ignore[arg-type]
    return model


@pytest.mark.parametrize(
    ("build", "modules"),
    [(constant, {"0", "2"}), (partial(zeroed, 0, 2, 4), {"0", "2", "4"})],
    ids=["constant", "zeros"],
)
def test_layers_whose_units_are_all_equal_are_named(
    build: Callable[[], nn.Sequential], modules: set[str], tmp_path: Path
) -> None:
    model = build()
    alerts, _ = train_it(tmp_path, model, [SGD(model.parameters(), lr=0.1)])
    (found,) = (one for rule, _, one in alerts if rule == "equal_units")
    assert modules <= {*found}


@pytest.mark.parametrize("layer", [0, 2, 4])
def test_one_layer_that_begins_at_zeros_is_not_named(layer: int, tmp_path: Path) -> None:
    model = zeroed(layer)
    alerts, _ = train_it(tmp_path, model, [SGD(model.parameters(), lr=0.1)])
    assert "equal_units" not in {rule for rule, _, _ in alerts}
