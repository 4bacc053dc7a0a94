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


def test_an_error_of_one_ends_all_and_each_is_closed() -> None:
    first, second = make(0), make(1)
    closed: list[int] = []
    first.on_close(lambda loop: closed.append(1))
    second.on_close(lambda loop: closed.append(2))
    bad = [*DATA[:2], (DATA[2][0] * float("nan"), DATA[2][1])]
    with pytest.raises(NanLossError):
        run_together([Turn(first, DATA, 9), Turn(second, bad, 9)])
    assert (first.loop_step, second.loop_step, closed) == (3, 3, [2, 1])


def test_data_that_ends_before_is_told() -> None:
    with pytest.raises(RuntimeError, match="2 steps done: data 'train' ended"):
        run_together([Turn(make(0), DATA[:2], 5)])


def test_none_goes_back_while_others_train() -> None:
    first, second = make(0), make(1)
    refused: list[str] = []

    def back(loop: Loop, metrics: Any) -> None:
        with pytest.raises(ProbeError) as raised:
            loop.check_back(0)
        refused.append(str(raised.value))

    first.on_step(back)
    run_together([Turn(first, DATA, 1), Turn(second, DATA, 1)])
    assert refused == ["it trains in turn with others; afterwards loop.rewind goes back"]


def test_no_loops_are_nothing_to_do() -> None:
    run_together([])
