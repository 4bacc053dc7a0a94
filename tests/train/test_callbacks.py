"""What loops are commonly asked to do besides."""

import copy
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from notebook_probe.errors import HookError, ScheduleError
from notebook_probe.schedules import Times
from notebook_probe.train import Checkpoints, Dataset, Loop
from notebook_probe.train.callbacks import (
    AccumulateByEpoch,
    EarlyStopping,
    WeightAverage,
    find_learning_rate,
)
from tests.train.conftest import a_loop, batches, small_model, trainer


@pytest.mark.slow
@given(n=st.integers(1, 7), first=st.integers(0, 10), more=st.integers(1, 20))
def test_every_n_steps_is_on_the_grid_of_all_steps(n: int, first: int, more: int) -> None:
    loop, seen, data = a_loop(), [], Dataset(batches(1) * 40)
    loop.every_n_steps(n, lambda loop, metrics: seen.append(loop.loop_step))
    loop.run_steps(data, first)
    loop.run_steps(data, more)
    assert seen == [step for step in range(first + more) if (step + 1) % n == 0]


def test_every_no_steps_is_refused() -> None:
    with pytest.raises(ScheduleError, match="the interval must be at least 1"):
        a_loop().every_n_steps(0, print)


def test_evaluations_come_after_epochs_or_every_few_steps() -> None:
    loop, seen = a_loop(), []
    loop.eval_every(batches(1))
    loop.eval_every(Dataset(batches(1), "val"), 2)
    loop.on_eval(lambda loop, metrics: seen.append((next(iter(metrics)), loop.n_updates)))
    loop.run_epochs(batches(3), 2)
    assert seen == [
        ("val_loss", 2), ("eval_loss", 3), ("val_loss", 4), ("val_loss", 6), ("eval_loss", 6)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("every", "updates"),
    [(3, [3, 6]), ("every(3, 1)", [1, 4, 7]), (Times(2), [4, 7]), ("between(2, 4)", [2, 3])],
)
def test_schedules_count_the_updates_completed_wherever_one_is_taken(
    every: Any, updates: list[int], tmp_path: Path
) -> None:
    loop, evaluated, called = a_loop(), [], []
    loop.eval_every(batches(1), every)
    loop.at(every, lambda loop, metrics: called.append(loop.n_updates))
    loop.add(Checkpoints(tmp_path, every))
    loop.on_eval(lambda loop, metrics: evaluated.append(loop.n_updates))
    loop.run_steps(batches(7), 7)
    assert evaluated == called == [one.step for one in loop.checkpoints] == updates


def stopping(values: list[float], **options: Any) -> tuple[EarlyStopping, Loop]:
    loop, left = a_loop(), iter(values)
    callback = loop.add(EarlyStopping("eval_score", **options))

    class Score:
        def update(self, prediction: Any, label: Any) -> None: ...
        def reset(self) -> None: ...
        def compute(self) -> float:
            return next(left)

    loop.trainer.eval_metrics._metrics["score"] = Score()
    loop.eval_every(batches(1), 1)
    loop.run_steps(batches(len(values)), len(values))
    return callback, loop


@pytest.mark.parametrize(
    ("mode", "values", "steps", "best"),
    [
        ("min", [3.0, 2.0, 2.5, 2.2, 1.0], 4, (2.0, 2)),
        ("max", [1.0, math.nan, 3.0, 2.0, 4.0], 5, (4.0, 5)),
        ("max", [1.0, 0.5, math.nan, 3.0], 3, (1.0, 1)),
    ],
)
def test_a_training_that_becomes_no_better_is_stopped(
    mode: Any, values: list[float], steps: int, best: tuple[float, int]
) -> None:
    callback, loop = stopping(values, mode=mode, patience=2)
    assert loop.loop_step == steps
    assert (callback.best, callback.best_step) == best
    assert loop.stopped is (steps < len(values)) is bool(callback.reason)


def test_a_better_one_must_be_better_by_so_much() -> None:
    callback, loop = stopping([3.0, 2.95, 2.9, 2.0], patience=2, min_delta=0.2)
    assert (loop.loop_step, callback.best) == (3, 3.0)
    assert "eval_score was 2.9 and not better than 3, of step 1, in 2" in callback.reason


def test_early_stopping_goes_on_where_it_was() -> None:
    callback, _ = stopping([3.0, 4.0], patience=3)
    again = EarlyStopping("eval_score", patience=3)
    again.load_state_dict(callback.state_dict())
    assert again.state_dict() == {"best": 3.0, "best_step": 1, "n_waited": 1}


def test_what_nobody_evaluates_cannot_stop_anything() -> None:
    loop = a_loop()
    loop.add(EarlyStopping("eval_los"))
    with pytest.raises(HookError, match=r"'eval_los'.*gave no such number; close: 'eval_loss'"):
        loop.eval(batches(1))


@pytest.mark.parametrize(
    ("evaluates", "monitor", "said"),
    [
        (False, "eval_loss", "nothing was evaluated; loop.eval_every"),
        (True, "loss", "no evaluation gave it; close: 'eval_loss'"),
    ],
)
def test_early_stopping_that_has_nothing_to_look_at_says_so_once(
    evaluates: bool, monitor: str, said: str
) -> None:
    loop = a_loop()
    loop.add(EarlyStopping(monitor))
    if evaluates:
        loop.eval_every(batches(1))
    with pytest.warns(UserWarning, match=f"'{monitor}'. stops nothing: {said}"):
        loop.run_epochs(batches(2), 1)
    loop.run_epochs(batches(2), 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"patience": 0}, "patience=0; allowed: a whole number from 1"),
        ({"mode": "least"}, "mode='least'; allowed: 'min', 'max'"),
        ({"min_delta": -1}, "min_delta=-1; allowed: a number from 0"),
    ],
)
def test_early_stopping_says_what_is_allowed(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        EarlyStopping(**options)


def test_more_is_accumulated_from_an_epoch_on() -> None:
    loop, seen = a_loop(), []
    loop.add(AccumulateByEpoch({0: 1, 1: 2, 3: 4}))
    loop.on_epoch(lambda loop: seen.append((loop.loop_step, loop.end_step)), priority=1)
    loop.run_epochs(batches(4), 4)
    assert [steps for steps, _ in seen] == [4, 6, 8, 9]
    assert loop.end_step == 9
    with pytest.raises(ValueError, match=r"AccumulateByEpoch\(\{0: 0\}\); allowed"):
        AccumulateByEpoch({0: 0})


@pytest.mark.parametrize("decay", [0.9, None])
def test_an_average_of_weights_is_that_of_its_formula(decay: float | None) -> None:
    loop = a_loop()
    average = loop.add(WeightAverage(loop.trainer.model, decay=decay, start=1))
    seen: list[np.ndarray[Any, Any]] = []
    weight = loop.trainer.model.get_parameter("0.weight")
    loop.on_step(lambda loop, metrics: seen.append(weight.detach().numpy().astype(np.float64)))
    loop.run_steps(batches(5), 5)
    expected = seen[1]
    for n, value in enumerate(seen[2:], start=2):
        kept = decay if decay is not None else (n - 1) / n
        expected = kept * expected + (1 - kept) * value
    with average.applied() as model:
        assert np.allclose(model.get_parameter("0.weight").detach().numpy(), expected, atol=1e-7)
    assert np.array_equal(weight.detach().numpy(), seen[-1])
    with pytest.raises(ValueError, match="decay=2"):
        WeightAverage(loop.trainer.model, decay=2)


def test_an_average_of_another_model_is_refused_and_one_of_a_part_is_not() -> None:
    loop = a_loop()
    part = loop.add(WeightAverage(loop.trainer.model.get_submodule("0"), decay=0.9))
    loop.run_steps(batches(1), 1)
    assert part.averaged.n_averaged == 1
    loop.add(WeightAverage(nn.Linear(3, 8)))
    with pytest.raises(HookError, match=r"WeightAverage\(Linear\): this is not the model that"):
        loop.run_steps(batches(1), 1)


@pytest.mark.slow
def test_a_range_test_of_rates_leaves_no_trace_and_finds_where_the_loss_falls() -> None:
    torch.manual_seed(0)
    x = torch.randn(256, 3)
    data = [(x, x @ torch.tensor([[1.0], [2.0], [-1.0]]))]
    model = nn.Linear(3, 1)
    ours = trainer(
        model, loss_fn=nn.functional.mse_loss, optimizer=torch.optim.SGD(model.parameters(), 0.1)
    )
    before = copy.deepcopy((model.state_dict(), ours.optimizer.state_dict()))
    state = torch.get_rng_state()
    found = find_learning_rate(ours, data, 1e-5, 100.0, 80)
    # A quadratic of largest curvature c diverges beyond 2/c.
    largest = 2 * float(torch.linalg.eigvalsh(x.T @ x / len(x))[-1])
    assert 1e-3 < found.suggestion < 2 / largest
    assert len(found.rates) == len(found.losses) < 80
    assert torch.equal(state, torch.get_rng_state())
    after = (model.state_dict(), ours.optimizer.state_dict())
    assert all(
        torch.equal(a, b) for a, b in zip(before[0].values(), after[0].values(), strict=True)
    )
    assert before[1] == after[1]
    assert len(found.figure().axes[0].lines) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [({"low": 0}, "allowed: 0 < low < high"), ({"n": 3}, "n=3; allowed"), ({"data": []}, "empty")],
)
def test_a_range_test_says_what_is_allowed(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        find_learning_rate(trainer(small_model()), **{"data": batches(2), **options})


def test_a_range_test_of_a_loop_says_where_its_trainer_is() -> None:
    with pytest.raises(TypeError, match=r"a Trainer is expected; a loop has it as loop\.trainer"):
        find_learning_rate(a_loop(), batches(1))  # type: ignore[arg-type]


class Lengths:
    """Data whose epochs nobody knows the length of beforehand."""

    name = "unknown"

    def __init__(self, *lengths: int) -> None:
        self._lengths = iter(lengths)

    def __iter__(self) -> Iterator[Any]:
        return iter(batches(1) * next(self._lengths))

    def reset(self) -> None: ...


def seen_by(loop: Loop) -> tuple[list[int], Callable[..., None]]:
    seen: list[int] = []
    return seen, lambda loop, metrics: seen.append(loop.loop_step)


@pytest.mark.slow
@given(n=st.integers(0, 12), total=st.integers(1, 25), before=st.integers(0, 6))
def test_n_times_during_a_loop_are_even_and_end_with_it(n: int, total: int, before: int) -> None:
    loop, data = a_loop(), Dataset(batches(1) * 40)
    loop.run_steps(data, before)
    seen, call = seen_by(loop)
    loop.n_times_during_loop(n, call)
    loop.run_steps(data, total)
    due = {before + -(-i * total // n) - 1 for i in range(1, n + 1)} if n < total else range(total)
    expected = sorted(due) if n < total else [before + i for i in due]
    assert seen == expected


def test_n_times_of_an_unknown_length_are_made_up_for_at_the_end() -> None:
    loop = a_loop()
    seen, call = seen_by(loop)
    loop.n_times_during_loop(2, call)
    loop.run_epochs(Lengths(150), 1)
    assert seen == [127, 150]  # the last one comes when the loop has ended


def test_exponential_calls_are_those_of_the_seed_and_once_more_at_the_end() -> None:
    loop = a_loop()
    seen, call = seen_by(loop)
    loop.exponential_callback(4, 1.5, call, call_on_end=True)
    loop.run_steps(Dataset(batches(1) * 60), 33)
    # k = 4, then 6, 9, 14: 4, 10, 19, 33; the loop has ended at 33
    assert seen == [4, 10, 19, 33]


def test_calls_by_the_clock_start_it_with_the_first_step_and_anew_after_the_work() -> None:
    loop, now = a_loop(), [0.0]
    seen: list[int] = []

    def call(loop: Loop, metrics: Any) -> None:
        seen.append(loop.loop_step)
        now[0] += 5  # the work takes long

    loop.on_step(lambda loop, metrics: now.__setitem__(0, now[0] + 1), priority=-1)
    loop.periodic_callback(3, call, clock=lambda: now[0])
    loop.run_steps(Dataset(batches(1) * 20), 10)
    assert seen == [3, 6, 9]


def test_a_hook_of_a_schedule_is_removed_whole() -> None:
    loop = a_loop()
    seen, call = seen_by(loop)
    hook = loop.at("every(2)", call, call_on_end=True)
    loop.run_steps(Dataset(batches(5)), 3)
    hook.remove()
    loop.run_steps(Dataset(batches(5)), 3)
    assert seen == [1, 3]


def test_what_is_no_schedule_or_function_is_refused() -> None:
    with pytest.raises(ScheduleError, match="'sometimes' does not parse"):
        a_loop().at("sometimes", print)
    with pytest.raises(TypeError, match=r"3: a function \(loop, metrics\) is expected"):
        a_loop().at(2, 3)  # type: ignore[arg-type]
