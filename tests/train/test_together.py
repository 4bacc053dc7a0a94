"""Loops that train in turn: each as it would alone."""

from typing import Any

import pytest
import torch
from torch import nn

from notebook_probe.errors import NanLossError, ProbeError, TrainingStopped
from notebook_probe.train import Loop, Trainer
from notebook_probe.train.loop.together import Turn, run_together

DATA = [(torch.full((4, 3), float(i)), torch.zeros(4, 1)) for i in range(20)]


def make(seed: int) -> Loop:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    return Loop(Trainer(model, nn.functional.mse_loss, optimizer), progress=False)


def weights(loop: Loop) -> list[torch.Tensor]:
    return [value.detach() for value in loop.trainer.model.parameters()]


def test_each_trains_to_its_own_end_bit_for_bit_as_alone() -> None:
    steps = [7, 3, 12]
    together = [make(seed) for seed in range(3)]
    torch.manual_seed(50)
    run_together([Turn(loop, DATA, n) for loop, n in zip(together, steps, strict=True)])
    for seed, (loop, n) in enumerate(zip(together, steps, strict=True)):
        alone = make(seed)
        torch.manual_seed(50)
        alone.run_steps(DATA, n)
        assert (loop.loop_step, loop.start_step, loop.end_step) == (n, 0, n)
        assert all(map(torch.equal, weights(loop), weights(alone)))


def test_steps_are_taken_in_turn_and_hooks_are_called_as_alone() -> None:
    events: list[str] = []
    loops = {name: make(0) for name in "ab"}
    for name, loop in loops.items():
        for kind in ("start", "step", "end", "close"):
            getattr(loop, f"on_{kind}")(lambda *_, told=f"{name} {kind}": events.append(told))
    run_together([Turn(loops["a"], DATA, 1), Turn(loops["b"], DATA, 3)])
    begun = ["a start", "b start", "a step", "b step", "b step", "b step"]
    assert events == [*begun, "b end", "b close", "a end", "a close"]


def test_one_that_is_stopped_leaves_the_others_training() -> None:
    first, second = make(0), make(1)
    first.on_step(lambda loop, metrics: loop.stop("enough"))
    run_together([Turn(first, DATA, 5), Turn(second, DATA, None)][:1])
    assert (first.loop_step, first.stopped) == (1, True)
    run_together([Turn(first, DATA, 5), Turn(second, DATA, 5)])
    assert (first.loop_step, second.loop_step) == (2, 5)
    assert (first.stopped, second.stopped) == (True, False)


def test_stop_in_the_panel_is_meant_for_one() -> None:
    first, second = make(0), make(1)

    class Stops:
        def __iter__(self) -> Any:
            yield DATA[0]
            raise TrainingStopped("Stop")

    run_together([Turn(first, Stops(), 5), Turn(second, DATA, 3)])
    assert (first.loop_step, first.stopped, second.loop_step) == (1, True, 3)


def test_an_error_of_one_ends_it_alone_and_is_raised_once_the_others_are_done() -> None:
    first, second, third = make(0), make(1), make(2)
    closed: list[int] = []
    numbers = {id(loop): n for n, loop in enumerate((first, second, third))}
    for one in (first, second, third):
        one.on_close(lambda loop: closed.append(numbers[id(loop)]))
        one.on_end(lambda loop, metrics: closed.append(10 + numbers[id(loop)]))
    bad = [*DATA[:2], (DATA[2][0] * float("nan"), DATA[2][1])]
    torch.manual_seed(50)
    with pytest.raises(NanLossError) as raised:
        run_together(
            [Turn(first, DATA, 9, "a"), Turn(second, bad, 9, "b"), Turn(third, DATA, 5, "c")]
        )
    assert (first.loop_step, second.loop_step, third.loop_step) == (9, 3, 5)
    assert closed == [12, 2, 1, 10, 0]
    (note,) = raised.value.__notes__
    assert note.startswith("b ended at step 3 by NanLossError: ")
    alone = make(0)
    torch.manual_seed(50)
    alone.run_steps(DATA, 9)
    assert all(map(torch.equal, weights(first), weights(alone)))


def test_of_several_that_fail_all_are_told() -> None:
    nan = [(DATA[0][0] * float("nan"), DATA[0][1])]
    turns = [Turn(make(n), [*DATA[: 2 - n], *nan], 9, f"m{n}") for n in range(2)]
    with pytest.raises(NanLossError) as raised:
        run_together(turns)
    assert [note.split(" by ")[0] for note in raised.value.__notes__] == [
        "m1 ended at step 2",
        "m0 ended at step 3",
    ]


def test_an_error_of_the_data_ends_all_and_each_is_closed() -> None:
    first, second = make(0), make(1)
    closed: list[int] = []
    first.on_close(lambda loop: closed.append(1))
    second.on_close(lambda loop: closed.append(2))

    def broken() -> Any:
        yield DATA[0]
        raise OSError("the disk is gone")

    with pytest.raises(Exception, match="the disk is gone"):
        run_together([Turn(first, DATA, 9), Turn(second, broken(), 9)])
    assert (first.loop_step, second.loop_step, closed) == (2, 1, [2, 1])


def test_data_that_ends_before_is_told() -> None:
    with pytest.raises(RuntimeError, match="2 steps done: data 'train' ended"):
        run_together([Turn(make(0), DATA[:2], 5)])


def test_none_goes_back_while_others_train() -> None:
    first, second = make(0), make(1)
    refused: list[str] = []

    def back(loop: Loop, metrics: Any) -> None:
        with pytest.raises(ProbeError) as raised:
            loop._rewinding.check_back(0)
        refused.append(str(raised.value))

    first.on_step(back)
    run_together([Turn(first, DATA, 1), Turn(second, DATA, 1)])
    assert refused == ["it trains in turn with others; afterwards loop.rewind goes back"]


def test_no_loops_are_nothing_to_do() -> None:
    run_together([])
