"""Steps, epochs, hooks and ends of a loop, traced."""

import math
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import HookError, InfLossError, NanLossError, NoChangeError
from notebook_probe.train import DataError, Dataset, Loop
from tests.train.conftest import a_loop, batches

Watched = Callable[..., nbp.Run]


def traced(loop: Loop) -> list[str]:
    trace: list[str] = []
    loop.on_start(lambda loop, data: trace.append(f"start {loop.loop_step}..{loop.end_step}"))
    loop.on_step(lambda loop, metrics: trace.append(f"{loop.epoch}:{loop.loop_step}"))
    loop.on_end(lambda loop, m: trace.append(f"end {loop.loop_step}"))
    loop.on_close(lambda loop: trace.append("close"))
    return trace


def test_epochs_go_to_the_end_of_the_data_and_begin_it_anew() -> None:
    loop = a_loop()
    trace = traced(loop)
    metrics = loop.run_epochs(batches(3), 2)
    steps = ["0:0", "0:1", "0:2", "1:3", "1:4", "1:5"]
    assert trace == ["start 0..6", *steps, "end 6", "close"]
    assert (loop.epoch, loop.loop_step, loop.end_step, loop.start_step) == (2, 6, 6, 0)
    assert metrics is not None
    assert metrics == {**loop.last_metrics}
    assert len(loop.train_step_durations) == 6


def test_a_former_name_of_a_loop_is_answered_by_the_present_one() -> None:
    with pytest.raises(AttributeError, match=r"a loop has no 'detach': it is remove\(\) of"):
        a_loop().detach  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"no 'run_step'; close: 'run_steps'"):
        a_loop().run_step  # type: ignore[attr-defined]  # noqa: B018


def test_steps_go_on_with_the_same_data() -> None:
    data, loop = batches(5), a_loop()
    seen: list[torch.Tensor] = []
    loop.trainer.model.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    assert loop.run_steps(data, 2) is not None
    assert loop.run_to_global_step(data, 5) is not None
    assert [id(x) for x in seen] == [id(x) for x, _ in data]
    with pytest.raises(RuntimeError, match="0 of 3 steps done: data 'train' ended"):
        loop.run_steps(data, 3)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_step_that_raised_is_done_with_its_own_batches_by_the_next_run_of_the_loop(
    error: type[BaseException],
) -> None:
    data, loop = batches(5), a_loop(accumulate=2)
    seen: list[int] = []
    order = {id(x): n for n, (x, _) in enumerate(data)}

    def note(module: nn.Module, args: tuple[torch.Tensor]) -> None:
        seen.append(order[id(args[0])])
        if seen == [0, 1, 2]:
            raise error

    loop.trainer.model.register_forward_pre_hook(note)
    with pytest.raises(error):
        loop.run_epochs(data, 1)
    loop.run_epochs(data, 1)
    assert seen == [0, 1, 2, 2, 3, 4]
    assert loop.loop_step == 3


@pytest.mark.parametrize("n", [0, -1])
def test_no_steps_touch_nothing(n: int) -> None:
    loop, data = a_loop(), Dataset(batches(2))
    trace = traced(loop)
    assert loop.run_steps(data, n) is None
    with pytest.warns(match="nothing is trained") if n < 0 else nullcontext():
        assert loop.run_epochs(data, n) is None
    assert (trace, data.position) == ([], 0)


def test_data_that_ends_early_closes_and_does_not_end() -> None:
    loop = a_loop()
    trace = traced(loop)
    with pytest.raises(RuntimeError, match="2 of 4 steps done: data 'train' ended"):
        loop.run_steps(batches(2), 4)
    assert trace == ["start 0..4", "0:0", "0:1", "close"]


def test_empty_epochs_end_without_metrics() -> None:
    loop = a_loop()
    trace = traced(loop)
    with pytest.warns(match=r"run_epochs\(data, 2\): nothing is trained; the data has no batch"):
        assert loop.run_epochs([], 2) is None  # which on_end gets, too
    assert trace == ["start 0..0", "end 0", "close"]


def test_a_negative_number_of_epochs_is_reported() -> None:
    loop = a_loop()
    with pytest.warns(match=r"run_epochs\(data, -1\): nothing is trained; a number from 0 is"):
        assert loop.run_epochs(batches(2), -1) is None
    assert loop.run_epochs(batches(2), 0) is None, "nothing was meant to be trained"
    assert loop.loop_step == 0


class Unknown:
    """Data of epochs of unequal length that nobody knows beforehand."""

    name = "unknown"

    def __init__(self, lengths: list[int]) -> None:
        self.lengths, self.epoch = lengths, 0

    def __iter__(self) -> Iterator[Any]:
        return iter(batches(self.lengths[self.epoch]))

    def reset(self) -> None:
        self.epoch += 1


@pytest.mark.slow
@given(lengths=st.lists(st.integers(0, 4), min_size=1, max_size=4), accumulate=st.integers(1, 3))
def test_the_last_step_is_estimated_from_the_epoch_before(
    lengths: list[int], accumulate: int
) -> None:
    loop = a_loop(accumulate=accumulate)
    ends: list[tuple[int, int]] = []
    loop.on_step(lambda loop, metrics: ends.append((loop.epoch, loop.end_step)))
    data = Unknown([*lengths, 0])
    loop.run_epochs(data, len(lengths))
    steps = [-(-n // accumulate) for n in lengths]
    expected, done = [], 0
    for epoch, n in enumerate(steps):
        left = len(steps) - epoch
        estimate = -1 if epoch == 0 else done + steps[epoch - 1] * left
        expected += [(epoch, estimate)] * n
        done += n
    assert ends == expected
    assert loop.loop_step == loop.end_step == sum(steps)


@pytest.mark.slow
@given(
    n_batches=st.integers(1, 5), epochs=st.integers(1, 3), k=st.integers(1, 3), at=st.integers(0, 9)
)
def test_a_loop_that_goes_on_makes_the_steps_that_were_left(
    n_batches: int, epochs: int, k: int, at: int
) -> None:
    data = batches(n_batches)
    whole = a_loop(accumulate=k)
    expected = traced(whole)
    states: list[dict[str, Any]] = []
    whole.on_step(lambda loop, metrics: states.append(loop.state_dict()), priority=-1)
    whole.run_epochs(data, epochs)
    at = at % len(states)
    resumed = a_loop(accumulate=k)
    trace = traced(resumed)
    state = states[at]
    assert state["loop_step"] == at + 1  # a hook sees the step just done; its state counts it
    resumed.load_state_dict(state)
    resumed.run_epochs(data, epochs)
    assert trace[1:] == expected[at + 2 :]
    assert trace[0] == f"start {at + 1}..{whole.end_step}"


def test_hooks_are_called_by_priority_and_then_in_order() -> None:
    loop, seen = a_loop(), []
    for name, priority in (("c", 1), ("a", -2), ("d", 1), ("b", 0)):
        loop.on_step(partial(lambda name, loop, metrics: seen.append(name), name), name, priority)
    loop.run_steps(batches(1), 1)
    assert seen == ["a", "b", "c", "d"]


def test_what_is_added_in_a_round_acts_in_the_next_and_what_is_removed_at_once() -> None:
    loop, seen = a_loop(), []
    later = loop.on_step(lambda loop, metrics: seen.append("later"), priority=5)

    def change(loop: Loop, metrics: Any) -> None:
        seen.append("change")
        if loop.loop_step == 0:
            loop.on_step(lambda loop, metrics: seen.append("added"), priority=9)
            later.remove()

    loop.on_step(change)
    loop.run_steps(batches(2), 2)
    assert seen == ["change", "change", "added"]


@pytest.mark.parametrize("kind", ["on_start", "on_step", "on_end", "on_close"])
def test_an_error_in_a_hook_names_it_and_stops_the_rest(kind: str) -> None:
    loop, seen = a_loop(), []

    def broken(*_: Any) -> None:
        raise KeyError("lr")

    getattr(loop, kind)(broken, "the broken one")
    getattr(loop, kind)(lambda *_: seen.append("next"))
    loop.on_close(lambda loop: seen.append("close"))
    with pytest.raises(HookError, match=f"{kind} hook 'the broken one': KeyError: 'lr'") as error:
        loop.run_steps(batches(2), 2)
    assert isinstance(error.value.__cause__, KeyError)
    assert seen == (["next", "close"] if kind == "on_close" else ["close"])


def test_an_error_of_the_data_and_one_of_the_step_stay_what_they_are() -> None:
    def broken() -> Iterator[Any]:
        yield batches(1)[0]
        raise OSError("gone")

    loop, trace = a_loop(), []
    loop.on_close(lambda loop: trace.append("close"))
    with pytest.raises(DataError, match="'train' raised after 1 batches: OSError: gone"):
        loop.run_epochs(broken(), 1)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        loop.run_epochs([(torch.ones(2, 7), torch.zeros(2).long())], 1)
    assert trace == ["close", "close"]


def test_objects_take_part_by_their_methods() -> None:
    class Counts:
        priority = -1

        def __init__(self) -> None:
            self.seen: list[str] = []

        def on_start(self, loop: Loop, data: Dataset) -> None:
            self.seen.append(data.name)

        def on_close(self, loop: Loop) -> None:
            self.seen.append("close")

    loop = a_loop()
    counts = loop.add(Counts())
    loop.run_steps(Dataset(batches(1), "digits"), 1)
    assert counts.seen == ["digits", "close"]
    for wrong in (Counts, 3, "on_step"):
        with pytest.raises(
            TypeError, match="an object with one of the methods on_start, on_epoch, on_step"
        ):
            loop.add(wrong)


@pytest.mark.parametrize(("value", "error"), [(math.nan, NanLossError), (-math.inf, InfLossError)])
@pytest.mark.parametrize("check", [True, "now"])
def test_a_loss_that_is_no_number_ends_the_loop_after_its_hooks(
    value: float, error: type[Exception], check: Any
) -> None:
    data = batches(4)
    loop = Loop(
        a_loop(loss_fn=lambda p, y: p.sum() * (1 if int(y[0]) < 5 else value)).trainer,
        check_finite=check,
    )
    data[2][1].fill_(7)
    trace = traced(loop)
    with pytest.raises(error, match=r"loss of step 2 is (nan|-inf|inf); allowed"):
        loop.run_epochs(data, 1)
    assert trace[-2:] == ["0:2", "close"]
    assert loop.loop_step == 3


def test_a_loss_may_be_no_number_where_nobody_checks() -> None:
    loop = Loop(a_loop(loss_fn=lambda p, y: p.sum() * math.nan).trainer, check_finite=False)
    assert loop.run_epochs(batches(2), 1) is not None


def test_what_check_finite_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="check_finite='later'; allowed: True, 'now', False"):
        Loop(a_loop().trainer, check_finite="later")  # type: ignore[arg-type]


def test_skipped_attempts_are_counted_and_a_hundred_in_a_row_end_it() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    loop = a_loop(scaler=scaler)
    data = [(x * math.inf, y) for x, y in batches(1)] * 3 + batches(2)
    trace = traced(loop)
    loop.run_epochs(data, 1)
    assert (loop.loop_step, loop.skipped_steps) == (2, 3)
    assert [entry for entry in trace if ":" in entry] == ["0:0", "0:1"]
    with pytest.raises(NoChangeError, match="100 updates in a row were skipped before step 2"):
        loop.run_epochs(data[:1] * 101, 1)


def test_a_stop_finishes_the_step_and_the_data_is_where_it_was_left() -> None:
    loop, data = a_loop(), Dataset(batches(6))
    trace = traced(loop)
    loop.on_step(lambda loop, metrics: loop.stop() if loop.loop_step == 2 else None)
    assert loop.run_epochs(data, 1) is not None
    assert loop.stopped
    assert trace == ["start 0..6", "0:0", "0:1", "0:2", "close"]
    assert (loop.loop_step, data.position) == (3, 3)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupt_finishes_the_step() -> None:
    loop, data = a_loop(), Dataset(batches(6))

    def interrupt(module: nn.Module, args: Any) -> None:
        if data.position == 2:
            os.kill(os.getpid(), signal.SIGINT)

    loop.trainer.model.register_forward_pre_hook(interrupt)
    before = signal.getsignal(signal.SIGINT)
    loop.run_epochs(data, 1)
    assert (loop.stopped, loop.loop_step, data.position) == (True, 2, 2)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("interruptible")
def test_the_second_interrupt_is_as_ever() -> None:
    loop = a_loop()

    def twice(module: nn.Module, args: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    loop.trainer.model.register_forward_pre_hook(twice)
    trace = traced(loop)
    with pytest.raises(KeyboardInterrupt):
        loop.run_epochs(batches(3), 1)
    assert trace == ["start 0..3", "close"]


def test_the_median_is_the_upper_one() -> None:
    loop = a_loop()
    assert loop.median_train_step_duration() == 0.001
    loop.train_step_durations.extend([4.0, 1.0, 3.0, 2.0])
    assert loop.median_train_step_duration() == 3.0
    assert [*loop.train_step_durations] == [4.0, 1.0, 3.0, 2.0]


def test_metrics_are_attributes_and_show_as_names_and_numbers() -> None:
    loop = a_loop(loss_fn=lambda prediction, label: prediction.sum() * 0 + 0.123456)
    metrics = loop.run_steps(batches(1), 1)
    assert metrics is not None
    assert float(metrics.loss) == float(metrics["loss"]) == pytest.approx(0.123456)
    assert repr(metrics) == "Metrics(loss=0.1235, loss_moving=0.1235, fn_loss_moving=0.1235)"
    found = loop.eval(batches(1))
    assert repr(found) == "Metrics(loss=0.1235, fn_loss=0.1235)"
    assert loop.last_metrics.eval_loss == found.loss
    with pytest.raises(AttributeError, match="no metric 'los'; there are: loss, fn_loss"):
        print(found.los)
