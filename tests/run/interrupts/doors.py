"""What can be interrupted: each door of a run, with what is done before and after it."""

from __future__ import annotations

import gc
import io
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import ReplacedWarning, UnknownNameError
from notebook_probe.record.store.lock import is_locked
from notebook_probe.train import Loop, Trainer
from tests.models import floats, loss_of, made, mlp, sgd, train_step

__all__ = ["DOORS", "Door", "LoopTraining", "Training"]

AnyTraining = TypeVar("AnyTraining", bound="Training")

batch = floats(5, 4)
LAST = 5
PATIENCE_S = 10.0

ENGINE = vars(torch.autograd)["_engine_run_backward"]


def _weights(model: nn.Module) -> list[Tensor]:
    return [value.detach().clone() for value in model.parameters()]


def _twin() -> list[list[Tensor]]:
    """The weights of a training that nobody watches, after so many steps."""
    model = made(mlp)
    optimizer, found = sgd(model), [_weights(model)]
    for step in range(LAST):
        train_step(model, optimizer, batch(step))
        found.append(_weights(model))
    return found


TWIN = _twin()


class Training:
    """One model, its record, and how far it has come.

    Parameters
    ----------
    folder : Path
        Of the record.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = made(mlp)
        self.optimizer = sgd(self.model)
        self.run: nbp.Run | None = None

    @property
    def n_done(self) -> int:
        """Updates that the weights have seen; each is whole or has not happened."""
        now = _weights(self.model)
        equal = [all(map(torch.equal, now, then)) for then in TWIN]
        assert any(equal), "the weights are those of no training that nobody watches"
        return equal.index(True)

    def watch(self) -> None:
        with redirect_stdout(io.StringIO()):
            self.run = self._watched(
                store=self.folder, probes={"0": ["output_norm", "grad_norm"]}, budget=None
            )

    def _watched(self, **options: Any) -> nbp.Run:
        return nbp.watch(self.model, self.optimizer, **options)

    def train(self, n_steps: int) -> None:
        """Train until so many updates have been made."""
        while self.n_done < n_steps:
            self.step()

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss_of(self.model(batch(self.n_done))).backward()
        self.optimizer.step()

    def attach(self) -> None:
        self._run.attach("2", "output_std")

    def detach(self) -> None:
        with suppress(UnknownNameError):  # it is detached already
            self._run.detach("0", "output_norm")

    def flush(self) -> None:
        self._run.flush()

    def log(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReplacedWarning)  # in this step it may be there
            self._run.log({"mine": 1.0})

    def status(self) -> None:
        self._run.status()

    def explore(self) -> None:
        self._run.explore()

    def close(self) -> None:
        self._run.close()

    @property
    def _run(self) -> nbp.Run:
        assert self.run is not None
        return self.run

    def check(self) -> None:
        """Nothing is left behind, and each step that was finished is a row or counted as lost."""
        lost = self._run.status().dropped_rows
        record = nbp.open_run(self.folder)
        assert record.finished
        steps = record.data.step.values.tolist() if record.streams else []
        assert steps == sorted(set(steps))
        missing = set(range(self.n_done)) - set(steps)
        assert len(missing) <= lost, f"steps {missing} are missing, {lost} rows were lost"
        assert max(steps, default=-1) < self.n_done
        self.check_nothing_is_left()

    def check_nothing_is_left(self) -> None:
        for module in self.model.modules():
            assert not module._forward_hooks
            assert not module._forward_pre_hooks
        for value in self.model.parameters():
            assert not value._backward_hooks
            assert not getattr(value, "_post_accumulate_grad_hooks", None)
        assert vars(torch.autograd)["_engine_run_backward"] is ENGINE
        assert not is_locked(self.folder)
        _wait_until(lambda: not _own_threads())
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
        assert gc.isenabled()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class LoopTraining(Training):
    """The same training by a `Loop`, which saves its state next to the record."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.loop = Loop(Trainer(self.model, _loss, self.optimizer), progress=False)
        self._data = [(batch(step), torch.zeros(())) for step in range(LAST)]

    @property
    def states(self) -> Path:
        return self.folder / "states"

    def _watched(self, **options: Any) -> nbp.Run:
        return self.loop.watch(**options)

    def train(self, n_steps: int) -> None:
        self.loop.run_to_global_step(self._data, n_steps)
        assert self.n_done == self.loop.loop_step
        assert self.loop.loop_step == n_steps or self.loop.stopped  # by an interrupt, between steps

    def save(self) -> None:
        self.loop.save_checkpoint(self.states)

    def load(self) -> None:
        self.loop.load_checkpoint(self.states, 3)

    def rewind(self) -> None:
        self.loop.rewind(3)
        self.run = self.loop.run


def _loss(output: Tensor, _: Tensor) -> Tensor:
    return loss_of(output)


def _own_threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith(("notebook_probe", "notebook-probe"))]


def _wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"left: {_own_threads()}"
        time.sleep(0.001)


class Door(Generic[AnyTraining]):
    """A call that is interrupted.

    Parameters
    ----------
    before, act, after : callable
        What comes before it; the call, which is made again once it was interrupted; what follows.
    kind : type of Training
        How the steps are trained.
    """

    def __init__(
        self,
        before: Callable[[AnyTraining], None],
        act: Callable[[AnyTraining], None],
        after: Callable[[AnyTraining], None],
        kind: type[AnyTraining],
    ) -> None:
        self._before, self._act, self._after, self._kind = before, act, after, kind

    def play(self, folder: Path, around: Callable[[Callable[[], None]], object]) -> None:
        """Play one training through, its call made by ``around`` first and then again."""
        training = self._kind(folder / "r.zarr")
        self._before(training)
        around(lambda: self._act(training))
        self._act(training)
        self._after(training)
        training.train(LAST)
        training.close()
        training.check()
        shutil.rmtree(folder / "r.zarr")


def _nothing(training: Training) -> None:
    """There is nothing to do."""


def _begun(training: Training) -> None:
    training.watch()
    training.train(3)


def _is_attached(training: Training) -> None:
    training.train(4)
    assert training._run.data.output_std.sel(module="2").notnull().any()


def _is_detached(training: Training) -> None:
    assert "output_norm" not in {probe.quantity for probe in training._run.probes()}


def _is_flushed(training: Training) -> None:
    assert nbp.open_run(training.folder).data.sizes["step"] == 2  # the third is open


def _ends(training: Training) -> None:
    training.check()
    training.watch()  # the record goes on


def _step(training: Training) -> None:
    training.train(training.n_done + 1) if training.n_done < LAST else None


def _is_saved(training: LoopTraining) -> None:
    again = LoopTraining(training.folder)
    again.load()
    assert again.n_done == again.loop.loop_step == 3


def _saved(training: LoopTraining) -> None:
    _begun(training)
    training.save()
    training.train(LAST)


def _saved_and_closed(training: LoopTraining) -> None:
    _saved(training)
    training.close()


def _is_loaded(training: LoopTraining) -> None:
    assert training.n_done == 3
    training.watch()  # the record continues there


def _is_rewound(training: LoopTraining) -> None:
    assert training.n_done == training.loop.loop_step == 3


def _of_run(
    before: Callable[[Training], None],
    act: Callable[[Training], None],
    after: Callable[[Training], None] = _nothing,
) -> Door[Training]:
    return Door(before, act, after, Training)


def _of_loop(
    before: Callable[[LoopTraining], None],
    act: Callable[[LoopTraining], None],
    after: Callable[[LoopTraining], None] = _nothing,
) -> Door[LoopTraining]:
    return Door(before, act, after, LoopTraining)


DOORS: Mapping[str, Door[Any]] = {
    "watch": _of_run(_nothing, Training.watch),
    "watch again": _of_run(_begun, Training.watch),
    "step": _of_run(_begun, _step),
    "attach": _of_run(_begun, Training.attach, _is_attached),
    "detach": _of_run(_begun, Training.detach, _is_detached),
    "flush": _of_run(_begun, Training.flush, _is_flushed),
    "status": _of_run(_begun, Training.status),
    "log": _of_run(_begun, Training.log),
    "explore": _of_run(_begun, Training.explore),
    "close": _of_run(_begun, Training.close, _ends),
    "loop": _of_loop(_begun, lambda training: training.train(LAST)),
    "save a checkpoint": _of_loop(_begun, LoopTraining.save, _is_saved),
    "load a checkpoint": _of_loop(_saved_and_closed, LoopTraining.load, _is_loaded),
    "rewind": _of_loop(_saved, LoopTraining.rewind, _is_rewound),
}
