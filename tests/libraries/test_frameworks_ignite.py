"""The handler for ignite: what its engines put out is what is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from ignite.engine import (
    Engine,
    Events,
    create_supervised_evaluator,
    create_supervised_trainer,
)
from ignite.metrics import Accuracy, Loss, RunningAverage
from torch import nn
from torch.nn import functional as F
from torch.optim import AdamW
from torch.utils.data import DataLoader

import notebook_probe as nbp
from notebook_probe.train.frameworks.ignite import WatchHandler
from tests.libraries.frameworks_page import run_section
from tests.libraries.recorded_scalars import nearly, scalars, stop_at
from tests.libraries.trained_twice import BATCH_SIZE, N_BATCHES, N_EPOCHS, classifier, dataset
from tests.models import made
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = pytest.mark.libraries


class Training:
    """A trainer with an evaluator after every epoch, as ignite's guide says."""

    def __init__(self, model: nn.Module) -> None:
        self.optimizer = AdamW(model.parameters(), lr=0.01)
        self.trainer = create_supervised_trainer(model, self.optimizer, F.cross_entropy)
        RunningAverage(output_transform=lambda loss: loss).attach(self.trainer, "average")
        metrics = {"accuracy": Accuracy(), "nll": Loss(F.cross_entropy)}
        self.evaluator = create_supervised_evaluator(model, metrics)
        self.losses: list[float] = []
        self.found: dict[int, dict[str, float]] = {}
        self.averages: dict[int, float] = {}
        self.n_drawn = 0
        self.trainer.add_event_handler(Events.ITERATION_COMPLETED, self._look)
        self.trainer.add_event_handler(Events.GET_BATCH_COMPLETED, self._draw)
        self.trainer.add_event_handler(Events.EPOCH_COMPLETED, self._evaluate)

    def fit(self) -> None:
        torch.manual_seed(7)
        loader = DataLoader(dataset(), BATCH_SIZE, shuffle=True)
        self.trainer.run(loader, max_epochs=N_EPOCHS)

    def _look(self, engine: Engine) -> None:
        self.losses.append(engine.state.output)

    def _draw(self, engine: Engine) -> None:
        self.n_drawn += 1

    def _evaluate(self, engine: Engine) -> None:
        self.evaluator.run(DataLoader(dataset(seed=1), BATCH_SIZE))
        self.found[engine.state.iteration] = dict(self.evaluator.state.metrics)
        self.averages[engine.state.iteration] = engine.state.metrics["average"]


def test_what_the_engines_put_out_is_recorded_at_its_steps_and_states(tmp_path: Path) -> None:
    alone, model = made(classifier), made(classifier)
    training = Training(alone)
    training.fit()
    left = everything(alone, [training.optimizer])
    training = Training(model)
    handler = WatchHandler(model, store=tmp_path / "run.zarr")
    handler.attach(training.trainer, eval=training.evaluator)
    training.fit()
    assert differing(left, everything(model, [training.optimizer])) == []
    run = handler.run
    assert run is not None
    assert len(training.losses) == N_EPOCHS * N_BATCHES
    assert scalars(run, "loss") == nearly(dict(enumerate(training.losses)))
    for name in ("accuracy", "nll"):
        found = {step: values[name] for step, values in training.found.items()}
        assert list(found) == [N_BATCHES, 2 * N_BATCHES]
        assert scalars(run, f"eval_{name}") == nearly(found)
    assert scalars(run, "average") == nearly(training.averages)
    epochs = [event.step for event in run.events if event.kind == "epoch"]
    assert epochs == [0, N_BATCHES]
    assert run.status().problem == ""
    run.close()


def test_stop_ends_the_trainer_before_another_batch_is_drawn(watch: Watch) -> None:
    model = made(classifier)
    run, training = watch(model), Training(model)
    WatchHandler(run).attach(training.trainer)
    stop_at(run, 4)
    training.fit()  # and returns
    assert training.n_drawn == 4
    assert list(scalars(run, "loss")) == [0, 1, 2, 3]
    assert run.status().state == "idle"


def test_an_output_of_several_numbers_is_recorded_by_their_names(watch: Watch) -> None:
    model = made(classifier)
    run, training = watch(model), Training(model)

    def several(loss: float) -> dict[str, Any]:
        return {"twice": 2 * loss, "text": "of no number"}

    WatchHandler(run, several).attach(training.trainer)
    training.fit()
    doubled = {step: 2 * loss for step, loss in enumerate(training.losses)}
    assert scalars(run, "twice") == nearly(doubled)
    assert "text" not in run.data


def test_a_schedule_knows_how_long_the_trainer_trains(watch: Watch) -> None:
    model = made(classifier)
    run, training = watch(model, probes=None), Training(model)
    run.attach("0", "weight_norm", "times(5)")
    WatchHandler(run).attach(training.trainer)
    training.fit()
    steps = run.data.weight_norm.dropna("step", how="all").step.values.tolist()
    assert len(steps) == 5
    assert steps[-1] > N_BATCHES


def test_an_error_of_the_training_is_raised_as_ever(watch: Watch) -> None:
    model = made(classifier)
    run, training = watch(model), Training(model)

    def fail(engine: Engine) -> None:
        raise FloatingPointError("loss is nan")

    training.trainer.add_event_handler(Events.ITERATION_COMPLETED(once=7), fail)
    WatchHandler(run).attach(training.trainer)
    with pytest.raises(FloatingPointError):
        training.fit()
    assert list(scalars(run, "loss")) == [0, 1, 2, 3, 4, 5]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = made(classifier)
    training = Training(model)
    names = {"model": model, "trainer": training.trainer, "evaluator": training.evaluator}
    run_section("ignite", {**names, "loader": DataLoader(dataset(), BATCH_SIZE)})
    assert list(scalars(nbp.open_run("runs/first.zarr"), "eval_accuracy")) == [10, 20]
