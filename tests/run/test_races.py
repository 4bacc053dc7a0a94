"""A run may begin and end on one thread while another trains its model, which never notices."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from notebook_probe.run.run import Run
from tests.models import floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)


def on_another_thread(act: Callable[[], object]) -> None:
    """Do something there and wait for its end; its exception is raised here."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in errors:
        raise error


class TrainedMeanwhile(nn.Sequential):
    """While a hook is put on it, somebody trains a step of it elsewhere."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)
    n_trained = 0

    def register_forward_pre_hook(self, *given: Any, **more: Any) -> RemovableHandle:
        return self._trained(super().register_forward_pre_hook(*given, **more))

    def register_forward_hook(self, *given: Any, **more: Any) -> RemovableHandle:
        return self._trained(super().register_forward_hook(*given, **more))

    def _trained(self, handle: RemovableHandle) -> RemovableHandle:
        on_another_thread(self.meanwhile)
        self.n_trained += 1
        return handle


def test_a_step_trained_while_the_hooks_go_on_raises_nothing_and_later_ones_are_recorded(
    watch: Watch,
) -> None:
    model = TrainedMeanwhile(*made(mlp))
    optimizer = sgd(model)
    model.meanwhile = lambda: train_step(model, optimizer, batch(0))
    run = watch(model, optimizer, probes={"0": ["output_norm", "grad_norm"]})
    assert model.n_trained == 2  # of the root: where a call begins, and where it ends
    first = run.status().step
    train(model, optimizer, batch, range(4))
    for quantity in ("output_norm", "grad_norm"):
        assert run.series("0", quantity).dropna("step").step.values[-4:].tolist() == [
            first + i for i in range(4)
        ]
    assert run.status().problem == ""


@pytest.mark.parametrize("place", ["", "0", "1"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_closed_in_the_midst_of_a_call_raises_nothing_there(
    place: str, moment: str, watch: Watch
) -> None:
    """torch has looked up the hooks of a call before it runs the first of them."""
    model = made(mlp)
    closing: list[Run] = []

    def close(module: nn.Module, *given: object) -> None:
        while closing:
            on_another_thread(closing.pop().close)

    module = model.get_submodule(place)
    register = (
        module.register_forward_pre_hook if moment == "before" else module.register_forward_hook
    )
    register(close)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes={"*": ["output_norm", "input_norm"]})
    train(model, optimizer, batch, range(3))
    closing.append(run)
    train(model, optimizer, batch, range(3))
    assert run.closed
    assert run.series("0", "output_norm").dropna("step").step.values[:2].tolist() == [0, 1]
    n_hooks = sum(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules())
    assert n_hooks == 1  # the test's own


@pytest.mark.slow
def test_runs_that_come_and_go_while_a_model_trains_leave_it_as_it_would_be(watch: Watch) -> None:
    steps, twin = range(300), made(mlp)
    train(twin, sgd(twin), batch, steps)
    model, n_runs, goes_on = made(mlp), 0, threading.Event()
    optimizer, errors = sgd(model), list[BaseException]()

    def training() -> None:
        try:
            for step in steps:
                if step == len(steps) // 2:
                    goes_on.wait()  # until some runs have come and gone
                train_step(model, optimizer, batch(step))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=training)
    thread.start()
    while thread.is_alive():
        run = watch(model, optimizer, probes=["default", "optimizer"])
        run.attach("*", "output_rms", "every(2)").remove()
        run.close()
        n_runs += 1
        if n_runs == 3:
            goes_on.set()
    thread.join()
    assert errors == []
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert bits(ours) == bits(theirs)
    assert all(not (one._forward_hooks or one._forward_pre_hooks) for one in model.modules())


def bits(parameter: Tensor) -> bytes:
    return bytes(parameter.detach().numpy().tobytes())
