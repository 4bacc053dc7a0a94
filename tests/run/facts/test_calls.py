"""What a model is given and what it does with it: each mistake is named, and its twin is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

import notebook_probe as nbp
from notebook_probe.run.run import Run
from tests.run.facts.trained import small

Batches: TypeAlias = "Iterator[Tensor]"
Found: TypeAlias = "tuple[set[str], set[str]]"


def found_in(run: Run) -> Found:
    return {one.rule for one in run.alerts}, {one.rule for one in run.remarks}


def trained_on(
    batches: Batches,
    folder: Path,
    *,
    model: nn.Module | None = None,
    n_steps: int = 24,
    around: Callable[[], AbstractContextManager[Any]] = nullcontext,
    after: Callable[[nn.Module], object] = lambda model: None,
) -> Found:
    model = small() if model is None else model
    optimizer = SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, folder / "a.zarr", [], budget=None) as run:
        for _, x in zip(range(n_steps), batches, strict=False):
            with around():
                loss = (model(x) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after(model)
    return found_in(run)


def random_batches() -> Batches:
    generator = torch.Generator().manual_seed(1)
    while True:
        yield torch.randn(8, 8, generator=generator)


def loader_of(n_batches: int, *, shuffle: bool = False) -> DataLoader[Any]:
    torch.manual_seed(0)
    return DataLoader(TensorDataset(torch.randn(8 * n_batches, 8)), 8, shuffle=shuffle)


def restarted(loader: DataLoader[Any]) -> Batches:
    while True:
        yield next(iter(loader))[0]


def epochs_of(loader: DataLoader[Any]) -> Batches:
    while True:
        yield from (one[0] for one in loader)


def test_a_loader_that_is_started_again_in_each_step_is_named(tmp_path: Path) -> None:
    assert trained_on(restarted(loader_of(4)), tmp_path) == (set(), {"repeated_batch"})
    (remark,) = nbp.open_run(tmp_path / "a.zarr").remarks
    assert "next(iter(loader)), which starts the loader again each time" in remark.text
    assert remark.step == 2, "at the third batch, two of which are the first one again"


@pytest.mark.parametrize(
    "batches",
    [
        lambda: repeat(torch.randn(8, 8)),
        lambda: epochs_of(loader_of(1)),
        lambda: (one.float() for one in repeat(torch.randn(8, 8).double())),
        lambda: chain(repeat(torch.randn(8, 8), 4), random_batches()),  # as of a rollout
    ],
)
def test_one_batch_that_may_be_meant_is_a_remark(
    batches: Callable[[], Batches], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    assert trained_on(batches(), tmp_path) == (set(), {"repeated_batch"})


@pytest.mark.parametrize(
    "batches",
    [
        random_batches,
        lambda: epochs_of(loader_of(2)),
        lambda: epochs_of(loader_of(1, shuffle=True)),
        lambda: restarted(loader_of(4, shuffle=True)),
        lambda: chain(repeat(torch.ones(8, 8).tril(), 2), random_batches()),
        lambda: chain(random_batches(), repeat(torch.ones(8, 8).tril(), 10)),
    ],
)
def test_batches_that_differ_are_not_named(batches: Callable[[], Batches], tmp_path: Path) -> None:
    assert trained_on(batches(), tmp_path) == (set(), set())


def test_batches_of_one_row_repeated_are_named(tmp_path: Path) -> None:
    collapsed = (x[:1].expand(8, 8) for x in random_batches())
    assert trained_on(collapsed, tmp_path) == ({"collapsed_batch"}, set())


def test_a_constant_input_is_a_remark(tmp_path: Path) -> None:
    assert trained_on(repeat(torch.ones(8, 8)), tmp_path) == (set(), {"collapsed_batch"})


def zeros_from(step: int) -> Batches:
    return (x * (i < step) for i, x in enumerate(random_batches()))


def test_a_batch_of_zeros_after_others_is_a_remark_at_once(tmp_path: Path) -> None:
    once = (x * (i != 9) for i, x in enumerate(random_batches()))
    assert trained_on(once, tmp_path) == (set(), {"blank_batch"})
    assert [one.step for one in nbp.open_run(tmp_path / "a.zarr").remarks] == [9]


def test_a_later_batch_of_zeros_whose_loss_jumps_is_a_remark_of_its_step(tmp_path: Path) -> None:
    model = small()
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=[], budget=None) as run:
        optimizer = SGD(model.parameters(), lr=1e-9)
        for step, x in zip(range(60), random_batches(), strict=False):
            x = x * 0 if step == 50 else x
            loss = (model(x) - model(x).detach() - 1).square().mean() + 9 * (x == 0).all()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.log(loss=loss.detach())
            run.flush()
        steps = [one.step for one in run.remarks if one.rule == "blank_batch"]
    assert steps == [50]


def test_inputs_that_are_zeros_from_the_beginning_lose_nothing(tmp_path: Path) -> None:
    assert trained_on(zeros_from(0), tmp_path) == (set(), {"collapsed_batch"})


@pytest.mark.parametrize(
    "batches",
    [
        lambda: (x[:1] for x in random_batches()),  # of one row
        lambda: (F.one_hot(x.argmax(1), 8).float() for x in random_batches()),
        lambda: (torch.cat([x[:1].expand(7, 8), x[1:2]]) for x in random_batches()),
    ],
)
def test_batches_whose_rows_differ_are_not_named(
    batches: Callable[[], Batches], tmp_path: Path
) -> None:
    assert trained_on(batches(), tmp_path) == (set(), set())


def test_tiny_inputs_are_named_unless_a_layer_normalizes_them(tmp_path: Path) -> None:
    batches = (1e-4 * x for x in random_batches())
    assert trained_on(batches, tmp_path) == ({"tiny_inputs"}, set())
    normalized = nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 2))
    found = trained_on(batches, tmp_path / "norm", model=normalized)
    assert found == (set(), set())


class Dropping(nn.Module):
    """Applies a function of dropout, with the mode that it is given."""

    def __init__(self, drop: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.drop, self.first, self.last = drop, nn.Linear(8, 8), nn.Linear(8, 2)
        self.layer = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.drop(self, self.first(x)).tanh())
        return out


def attended(p: float, x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x[None], x[None], x[None], dropout_p=p)[0]


def evaluate(model: nn.Module) -> None:
    model.eval()
    with torch.no_grad():
        model(torch.ones(4, 8))
    model.train()


@pytest.mark.parametrize(
    ("name", "drop"),
    [
        ("dropout", lambda self, x: F.dropout(x, 0.1)),
        ("dropout", lambda self, x: torch.dropout(x, 0.1, True)),
        ("scaled_dot_product_attention", lambda self, x: attended(0.1, x)),
        ("", lambda self, x: F.dropout(x, 0.1, training=self.training)),
        ("", lambda self, x: F.dropout(x, 0.0)),
        ("", lambda self, x: attended(0.1 * self.training, x)),
        ("", lambda self, x: self.layer(x)),
        ("", lambda self, x: self.layer.train()(x)),  # on purpose, to sample outputs
    ],
)
def test_a_function_of_dropout_that_stays_on_in_evaluation_is_named_with_its_line(
    name: str, drop: Callable[[nn.Module, Tensor], Tensor], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    found = trained_on(random_batches(), tmp_path, model=Dropping(drop), after=evaluate, n_steps=4)
    assert found == ({"dropout_in_evaluation"} if name else set(), set())
    if name:
        (alert,) = nbp.open_run(tmp_path / "a.zarr").alerts
        assert f"{name} at test_calls.py:" in alert.text
        assert "drops 10%" in alert.text


def evaluate_twice(model: nn.Module) -> None:
    for _ in range(2):
        evaluate(model)


def noisy(self: nn.Module, x: Tensor) -> Tensor:
    return x + torch.randn_like(x)


@pytest.mark.parametrize(
    ("drop", "after", "is_named"),
    [
        (noisy, evaluate_twice, True),
        (noisy, evaluate, False),  # never twice between two steps
        (lambda self, x: x + self.training * torch.randn_like(x), evaluate_twice, False),
        (lambda self, x: self.layer.train()(x), evaluate_twice, False),  # on purpose
        (lambda self, x: x, evaluate_twice, False),
    ],
)
def test_evaluations_of_one_batch_that_differ_are_a_remark_with_the_line(
    drop: Callable[[nn.Module, Tensor], Tensor],
    after: Callable[[nn.Module], None],
    is_named: bool,
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    found = trained_on(random_batches(), tmp_path, model=Dropping(drop), after=after, n_steps=4)
    assert found == (set(), {"random_evaluation"} if is_named else set())
    if is_named:
        (remark,) = nbp.open_run(tmp_path / "a.zarr").remarks
        assert "randn_like at test_calls.py:" in remark.text


def test_evaluations_of_other_inputs_or_weights_are_not_compared(tmp_path: Path) -> None:
    def others(model: nn.Module) -> None:
        model.eval()
        with torch.no_grad():
            for i in range(3):
                model(torch.ones(4, 8) + i)
        model.train()

    found = trained_on(random_batches(), tmp_path, model=Dropping(noisy), after=others, n_steps=4)
    assert found == (set(), set())


def test_following_an_evaluation_changes_no_number(tmp_path: Path) -> None:
    def outputs(is_watched: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = Dropping(lambda self, x: F.dropout(x, 0.5))
        optimizer = SGD(model.parameters(), lr=1e-2)
        folder = tmp_path / "a.zarr"
        run = nbp.watch(model, optimizer, folder, []) if is_watched else nullcontext()
        found = []
        with run:
            for _, x in zip(range(4), random_batches(), strict=False):
                model(x).square().mean().backward()
                optimizer.step()
                model.eval()
                with torch.no_grad():
                    found.append(model(x))
                model.train()
        return found

    for watched, alone in zip(outputs(True), outputs(False), strict=True):
        assert torch.equal(watched, alone)


class Casting(nn.Module):
    """Has a layer that may compute outside of autocast."""

    def __init__(self, is_cast: bool) -> None:
        super().__init__()
        self.first, self.last, self.is_cast = nn.Linear(8, 8), nn.Linear(8, 2), is_cast

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=self.is_cast):
            x = self.first(x.float())
        out: Tensor = self.last(x)
        return out.float()


half = partial(torch.autocast, "cpu", dtype=torch.bfloat16)


def test_layers_that_autocast_does_not_reach_are_a_remark(tmp_path: Path) -> None:
    for is_cast in (True, False):
        torch.manual_seed(0)
        found = trained_on(
            random_batches(), tmp_path / f"{is_cast}", model=Casting(is_cast), around=half
        )
        assert found == (set(), set() if is_cast else {"autocast_ignored"})
    (remark,) = nbp.open_run(tmp_path / "False" / "a.zarr").remarks
    assert remark.modules == ("first",)
    assert "float32" in remark.text


def test_autocast_for_another_device_and_weights_of_float64_are_named(tmp_path: Path) -> None:
    model = small().double()
    doubles = (x.double() for x in random_batches())
    found = trained_on(doubles, tmp_path / "double", model=model, around=half)
    assert found == ({"autocast_ignored"}, set())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "is_autocast_enabled", lambda kind: kind == "xpu")
        found = trained_on(random_batches(), tmp_path / "other")
    assert found == ({"autocast_ignored"}, set())
    assert trained_on(random_batches(), tmp_path / "off") == (set(), set())


class Averaging(nn.Module):
    """Returns one row for all rows of a batch, or the rows themselves."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner, self.dim = nn.Linear(8, 2), dim

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)
        return out - out.detach() + out.mean(self.dim, keepdim=True)


def test_outputs_that_are_the_same_for_all_inputs_are_named(tmp_path: Path) -> None:
    def dead() -> nn.Sequential:
        model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
        nn.init.constant_(model[0].bias, -50.0)  # type: ignore[arg-type]
        return model

    torch.manual_seed(0)
    alerts, _ = trained_on(random_batches(), tmp_path / "dead", model=dead())
    assert "constant_outputs" in alerts
    begins_at_zero = small()
    nn.init.zeros_(begins_at_zero[2].weight)  # type: ignore[arg-type]
    assert trained_on(random_batches(), tmp_path / "zero", model=begins_at_zero) == (set(), set())
    averaging = Averaging(1)
    assert trained_on(random_batches(), tmp_path / "rows", model=averaging) == (set(), set())


def test_of_a_model_that_is_called_several_times_in_a_step_equal_outputs_are_a_remark(
    tmp_path: Path,
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    nn.init.constant_(model[0].bias, -50.0)  # type: ignore[arg-type]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with nbp.watch(model, optimizer, store=tmp_path / "a.zarr", probes=None) as run:
        for _ in range(30):
            optimizer.zero_grad()
            sum(model(torch.rand(16, 8)).square().mean() for _ in range(3)).backward()
            optimizer.step()
    assert "constant_outputs" in {one.rule for one in run.remarks}
    assert "constant_outputs" not in {one.rule for one in run.alerts}


def test_hooks_that_are_registered_in_each_step_are_named(tmp_path: Path) -> None:
    def another(model: nn.Module) -> object:
        return model.register_forward_hook(lambda *_: None)

    assert trained_on(random_batches(), tmp_path / "more", after=another) == (
        {"hooks_pile_up"},
        set(),
    )

    def removed(model: nn.Module) -> None:
        another(model).remove()  # type: ignore[attr-defined]

    assert trained_on(random_batches(), tmp_path / "removed", after=removed) == (set(), set())


def test_hooks_that_pile_up_on_a_layer_that_is_measured_now_and_then_are_named(
    tmp_path: Path,
) -> None:
    def found(n_hooks: int) -> set[str]:
        model = small()
        with nbp.watch(model, store=tmp_path / f"{n_hooks}.zarr", probes=[], budget=None) as run:
            run.attach("0", "output_mean", "every(3)")
            for step in range(24):
                if step < n_hooks:
                    model[0].register_forward_hook(lambda *_: None)
                model(torch.rand(4, 8)).sum().backward()
                SGD(model.parameters(), lr=0.1).step()
        return {one.rule for one in run.alerts}

    assert "hooks_pile_up" in found(24)
    assert "hooks_pile_up" not in found(8)


class Sparse(nn.Module):
    """Returns a sparse tensor, and one of no elements, in turns."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.n = nn.Linear(8, 2), 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        out: Tensor = self.inner(x)
        return out.to_sparse() if self.n == 1 else out[:0] + out.sum()


def test_outputs_of_any_layout_turn_no_fact_off(tmp_path: Path) -> None:
    model = Sparse()
    with nbp.watch(model, store=tmp_path / "a.zarr", budget=None) as run:
        for _ in range(4):
            model(torch.rand(4, 8)).sum().backward()
            SGD(model.parameters(), lr=0.1).step()
    assert "facts are off" not in str(run.events)


def normalized(*, by_parametrization: bool = False) -> nn.Sequential:
    model = small()
    kind = nn.utils.parametrizations if by_parametrization else nn.utils
    model[0] = kind.spectral_norm(model[0])
    return model


def test_an_evaluation_before_a_spectral_norm_was_estimated_is_named(tmp_path: Path) -> None:
    model = normalized()
    weight = model[0].get_parameter("weight_orig").detach()
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=[], budget=None) as run:
        evaluate(model)
        optimizer = SGD(model.parameters(), lr=1e-3)
        for _, x in zip(range(4), random_batches(), strict=False):
            model(x).square().mean().backward()
            optimizer.step()
    (alert,) = run.alerts
    assert (alert.rule, alert.modules) == ("unsettled_spectral_norm", ("0",))
    true = torch.linalg.matrix_norm(weight, 2).item()
    assert f"its spectral norm is {true:.2g} or more" in alert.text


@pytest.mark.parametrize("kind", ["trained before", "parametrized", "evaluated later"])
def test_an_evaluation_with_a_spectral_norm_that_was_estimated_is_fine(
    kind: str, tmp_path: Path
) -> None:
    model = normalized(by_parametrization=kind == "parametrized")
    if kind == "trained before":
        for _, x in zip(range(20), random_batches(), strict=False):
            model(x)
    run = nbp.watch(model, store=tmp_path / "a.zarr", probes=[], budget=None)
    optimizer = SGD(model.parameters(), lr=1e-3)
    with run:
        if kind != "evaluated later":
            evaluate(model)
        for _, x in zip(range(20), random_batches(), strict=False):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        evaluate(model)
    assert found_in(run) == (set(), set())
