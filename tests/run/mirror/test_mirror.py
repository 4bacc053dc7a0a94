"""What is recorded is handed on to other loggers, and nothing that they do is felt."""

from __future__ import annotations

import atexit
import logging
import math
import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.errors import ClosedRunError, RecordWarning
from notebook_probe.run.mirror import mirror as mirroring
from notebook_probe.run.mirror import new_rows
from tests.models import equal, floats, made, mlp, sgd, train
from tests.run.conftest import Watch
from tests.run.loops import wait_until
from tests.run.mirror.loggers import (
    MlflowLike,
    SummaryWriterLike,
    WandbLike,
    recorded,
    same,
)

batch = floats(5, 4)
PROBES = {"*": ["output_norm", "weight_norm", ["grad_norm", "every(3)"]]}


def mlflow_like() -> MlflowLike:
    logger = MlflowLike()
    logger.start_run()
    return logger


LOGGERS: dict[str, Callable[[], Any]] = {
    "log": WandbLike,
    "add_scalar": SummaryWriterLike,
    "log_metrics": mlflow_like,
}


@pytest.mark.parametrize("kind", LOGGERS)
def test_a_logger_gets_every_number_of_the_record_and_nothing_else(kind: str, watch: Watch) -> None:
    logger, model = LOGGERS[kind](), made(mlp)
    run = watch(model, probes=PROBES)
    run.attach("*", "output_norm", "every(2)", phase="eval")
    run.attach("0", "output_histogram", "every(2)")
    run.mirror(logger)
    optimizer = sgd(model)
    for step in range(7):
        train(model, optimizer, batch, [step])
        run.log({"train/loss": float(step), "odd": math.nan if step == 2 else 1.0})
        if step % 3 == 0:
            with torch.no_grad():
                model.eval()(batch(0))
            model.train()
            run.log(val_loss=step + 0.5, phase="eval")
    run.close()
    assert same(logger.points, recorded(nbp.open_run(run.location)))
    assert {tag for tag, _ in logger.points} >= {
        "0/grad_norm", "train/loss", "odd", "val_loss", "2/eval_output_norm"
    }  # fmt: skip
    assert logger.points["val_loss", 4] == 3.5, "a state's number is at the state"
    assert math.isnan(logger.points["odd", 2]), "NaN that was measured is handed on"
    assert not any("histogram" in tag for tag, _ in logger.points)


def test_steps_come_in_order_though_schedules_and_windows_differ(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_rows, "WINDOW_VALUES", 40)  # a few steps at a time
    logger, model = WandbLike(), made(mlp)
    run = watch(model, probes=PROBES)
    run.attach("0", "output_rms", "every(5)")
    run.mirror(logger)
    train(model, sgd(model), batch, range(23))
    run.close()
    assert logger.steps == [*range(23)], "each once, all its streams together"
    assert same(logger.points, recorded(run))
    assert logger.threads == {"notebook_probe mirror"}


def test_numbers_come_while_training_goes_on(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirroring, "EVERY_S", 0.01)
    logger, model = WandbLike(), made(mlp)
    run = watch(model, probes=PROBES)
    run.mirror(logger)
    train(model, sgd(model), batch, range(9))
    run.flush()
    wait_until(lambda: len(logger.steps) == 7)  # the newest recorded step may get more
    assert logger.steps == [*range(7)]


def test_a_mirror_begun_late_gets_what_was_recorded_before(watch: Watch) -> None:
    logger, model = SummaryWriterLike(), made(mlp)
    run = watch(model, probes=PROBES)
    train(model, sgd(model), batch, range(4))
    with run.mirror(logger) as mirror:
        pass
    assert mirror.closed
    assert logger.points.keys() == {key for key in recorded(run) if key[1] < 3}, "3 is open"
    train(model, sgd(model), batch, range(4))
    mirror.close()
    assert max(step for _, step in logger.points) == 2, "it is closed"


def test_a_run_that_goes_on_hands_on_its_own_steps_alone(watch: Watch) -> None:
    first, logger, model = WandbLike(), WandbLike(), made(mlp)
    run = watch(model, probes=PROBES)
    run.mirror(first)
    train(model, sgd(model), batch, range(5))
    run.close()
    again = watch(model, probes=PROBES, store=run.location, step=3)
    again.mirror(logger)
    train(model, sgd(model), batch, range(4))
    again.close()
    assert (first.steps, logger.steps) == ([*range(5)], [*range(3, 7)])


def test_what_is_written_into_passed_steps_comes_where_a_logger_takes_it(watch: Watch) -> None:
    board, logger, model = SummaryWriterLike(), WandbLike(), made(mlp)
    run = watch(model, probes=PROBES)
    mirrors = [run.mirror(one) for one in (board, logger)]
    train(model, sgd(model), batch, range(6))
    run.flush()
    run.backfill("", "test_loss", [1, 2, 9], [1.0, 2.0, 9.0])
    run.close()
    assert board.points["test_loss", 1] == 1.0
    assert logger.points["test_loss", 9] == 9.0
    assert [mirror.left_out for mirror in mirrors] == [0, 0], "the run was read when it was over"


def test_a_step_that_comes_too_late_is_left_out_and_counted(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirroring, "EVERY_S", 0.01)
    logger, model = WandbLike(), made(mlp)
    run = watch(model, probes=PROBES)
    mirror = run.mirror(logger)
    train(model, sgd(model), batch, range(6))
    run.flush()
    wait_until(lambda: mirror.step == 3)
    run.backfill("", "test_loss", [1, 2, 9], [1.0, 2.0, 9.0])
    run.close()
    assert mirror.left_out == 2
    assert "2 steps left out" in repr(mirror)


def test_a_logger_that_raises_ends_its_mirror_and_nothing_else(watch: Watch) -> None:
    class Failing(WandbLike):
        def log(self, data: dict[str, Any], step: int | None = None, commit: bool = False) -> None:
            if step == 2:
                raise ConnectionError("no network")
            super().log(data, step)

    failing, fine, model, twin = Failing(), SummaryWriterLike(), made(mlp), made(mlp)
    run = watch(model, probes=PROBES)
    mirror = run.mirror(failing)
    run.mirror(fine)
    train(model, sgd(model), batch, range(5))
    train(twin, sgd(twin), batch, range(5))
    said = "the mirror to Failing is off: ConnectionError: no network"
    with pytest.warns(RecordWarning, match=said) as warned:
        mirror.close()
    assert len(warned) == 1
    assert run.status().problem == mirror.problem == said
    assert [event.text for event in run.events if event.kind == "error"] == [said]
    train(model, sgd(model), batch, range(5))
    train(twin, sgd(twin), batch, range(5))
    run.close()
    assert failing.steps == [0, 1]
    assert same(fine.points, recorded(nbp.open_run(run.location)))
    assert equal(model, twin)


def test_a_logger_that_hangs_is_given_up_and_the_record_is_whole(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirroring, "PATIENCE_S", 0.1)
    released = threading.Event()

    class Hanging(WandbLike):
        def log(self, data: dict[str, Any], step: int | None = None, commit: bool = False) -> None:
            released.wait(60)

    model = made(mlp)
    run = watch(model, probes=PROBES)
    mirror = run.mirror(Hanging())
    train(model, sgd(model), batch, range(5))
    with pytest.warns(RecordWarning, match=r"has taken nothing for 0\.1 s"):
        run.close()
    assert nbp.open_run(run.location).finished
    released.set()
    mirror.close()
    assert "taken nothing" in run.status().problem


def test_a_cell_that_runs_again_makes_no_second_mirror(watch: Watch) -> None:
    logger, model = WandbLike(), made(mlp)
    run = watch(model, probes=PROBES)
    mirror = run.mirror(logger)
    assert run.mirror(logger) is mirror
    mirror.close()
    mirror.close()
    assert run.mirror(logger) is not mirror


def test_a_logger_finds_its_own_context_on_the_other_thread(watch: Watch) -> None:
    current: ContextVar[list[int]] = ContextVar("current")
    steps: list[int] = []
    current.set(steps)

    class OfContext:
        def log(self, metrics: dict[str, float], step: int | None = None) -> None:
            current.get().append(step or 0)

    model = made(mlp)
    run = watch(model, probes=PROBES)
    run.mirror(OfContext())
    train(model, sgd(model), batch, range(3))
    run.close()
    assert steps == [0, 1, 2]


def test_a_program_that_closes_nothing_hands_on_all_before_the_logger_ends_itself(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_exit: list[Callable[[], object]] = []
    monkeypatch.setattr(atexit, "register", at_exit.append)
    monkeypatch.setattr(atexit, "unregister", at_exit.remove)
    logger, model = WandbLike(), made(mlp)
    run = watch(model, probes=PROBES)
    run.mirror(logger)
    train(model, sgd(model), batch, range(5))
    [ends] = at_exit
    ends()
    assert run.closed
    assert not at_exit
    assert logger.steps == [*range(5)]


class NotALogger:
    def log(self, name: str, value: float) -> None: ...


@pytest.mark.parametrize(
    "given", [None, "wandb", math, torch, logging.getLogger("any"), NotALogger(), {"log": print}]
)
def test_what_takes_no_numbers_by_step_is_refused_at_the_door(given: Any, watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(TypeError, match=r"it has none of log\(values, step=\)"):
        run.mirror(given)


def test_mlflow_needs_an_active_run_and_a_mirror_an_open_one(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(ValueError, match=r"call mlflow\.start_run\(\) before"):
        run.mirror(MlflowLike())
    run.close()
    with pytest.raises(ClosedRunError):
        run.mirror(WandbLike())


def test_names_that_mlflow_cannot_have_are_spelled_otherwise(watch: Watch) -> None:
    logger, module = mlflow_like(), ModuleType("like_mlflow")
    module.__dict__.update(log_metrics=logger.log_metrics, active_run=logger.active_run)
    run = watch(made(mlp), probes=None)
    mirror = run.mirror(module)
    run.log({"acc@1 (val)": 1.0, "größe": 2.0, "train/loss": 3.0})
    run.close()
    assert {tag for tag, _ in logger.points} == {"acc_1 _val_", "gr__e", "train/loss"}
    assert "like_mlflow" in repr(mirror)
