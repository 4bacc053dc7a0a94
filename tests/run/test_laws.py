"""A run driven at random, against a plain dictionary of what must have been recorded."""

from __future__ import annotations

import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import UnknownNameError
from notebook_probe.schedules import Every
from tests.models import loss_of, made, sgd

PLACES = ("first", "second", "third")
places = st.sampled_from(PLACES)
quantities = st.sampled_from(["output_mean", "input_norm", "weight_norm"])
schedules = st.builds(Every, st.integers(1, 3), st.integers(0, 2))

Key = tuple[str, str, Every]


class Branches(nn.Module):
    """Three layers, of which a call uses those it is told to."""

    def __init__(self) -> None:
        super().__init__()
        for place in PLACES:
            self.add_module(place, nn.Linear(3, 3))

    def forward(self, x: Tensor, used: frozenset[str]) -> Tensor:
        return sum((self.get_submodule(place)(x) for place in sorted(used)), x)


class Recorded(RuleBasedStateMachine):
    """Attach, detach, train, skip, evaluate, log, read, settle, in any order."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.model = made(Branches)
        self.optimizer = sgd(self.model, lr=0.01)
        self.run = nbp.watch(self.model, store=Path(self.folder.name) / "r.zarr", probes=None)
        self.step = 0
        self.is_open = False
        """The last step was not followed by another yet: changes wait for the next one."""
        self.active: set[Key] = set()
        self.wanted: set[Key] = set()
        self.values: dict[tuple[str, str], dict[int, float]] = {}
        self.logged: dict[int, float] = {}
        self.early: set[int] = set()
        """Steps of which a number was logged before they were open."""
        self.has_logged = False
        """One was logged since the last update, of the step that it ended."""
        self.validated: dict[int, float] = {}

    def teardown(self) -> None:
        if hasattr(self, "run"):
            self.run.close()
            stored = nbp.open_run(self.run.location)
            self.compare(stored)
            self.folder.cleanup()

    @rule(place=places, quantity=quantities, schedule=schedules)
    def attach(self, place: str, quantity: str, schedule: Every) -> None:
        self.run.attach(place, quantity, schedule)
        self.wanted.add((place, quantity, schedule))

    @precondition(lambda self: self.wanted)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        place, quantity, _ = data.draw(st.sampled_from(sorted(self.wanted, key=str)))
        self.run.detach(place, quantity)
        self.wanted = {key for key in self.wanted if key[:2] != (place, quantity)}

    @rule(used=st.frozensets(places), micro=st.integers(1, 2), seed=st.integers(0, 99))
    def train(self, used: frozenset[str], micro: int, seed: int) -> None:
        self.active = set(self.wanted)
        due = {(place, quantity) for place, quantity, when in self.active if when(self.step)}
        batches = torch.randn(micro, 4, 3, generator=torch.Generator().manual_seed(seed))
        self.optimizer.zero_grad()
        weights = {p: self.numbers(self.model.get_parameter(f"{p}.weight")) for p in PLACES}
        outputs = self.outputs(batches)
        for batch in batches.requires_grad_():
            loss_of(self.model(batch, used)).backward()
        self.optimizer.step()
        given = self.numbers(batches)
        for place, quantity in due:
            if quantity == "weight_norm":
                value = float(np.linalg.norm(weights[place]))
            elif place not in used:
                continue
            elif quantity == "input_norm":
                value = float(np.linalg.norm(given))
            else:
                value = float(outputs[place].mean())
            self.values.setdefault((place, quantity), {})[self.step] = value
        self.step += 1
        self.is_open, self.has_logged = True, False

    @rule(seed=st.integers(0, 99), inference=st.booleans())
    def evaluate(self, seed: int, inference: bool) -> None:
        self.model.eval()
        with torch.inference_mode() if inference else torch.no_grad():
            self.model(1e6 * torch.randn(2, 3), frozenset(PLACES))
        self.model.train()

    @rule(value=st.floats(-1e3, 1e3, width=32))
    def log(self, value: float) -> None:
        """A scalar belongs to the open step, or to the next where none is open.

        To the next also where the open step has one from before it was open, or since its update.
        """
        step = self.step - 1 if self.is_open else self.step
        if self.is_open and (self.has_logged or step in self.early):
            step = self.step
        self.has_logged |= self.is_open
        if step == self.step:
            self.early.add(step)
        with warnings.catch_warnings():
            if step in self.logged:
                warnings.simplefilter("ignore", nbp.ReplacedWarning)
            self.run.log(loss=value)
        self.logged[step] = value

    @rule(value=st.floats(-1e3, 1e3, width=32))
    def log_of_state(self, value: float) -> None:
        """A scalar of an evaluation belongs to the state, whatever steps are open."""
        with warnings.catch_warnings():
            if self.step in self.validated:
                warnings.simplefilter("ignore", nbp.ReplacedWarning)
            self.run.log(val_loss=value, phase="eval")
        self.validated[self.step] = value

    @rule()
    def settle(self) -> None:
        self.run.controls.settle()
        self.is_open = False

    @invariant()
    def everything_is_there(self) -> None:
        if hasattr(self, "run"):
            self.compare(self.run)
            listed = {(probe.module, probe.quantity, probe.schedule) for probe in self.run.probes()}
            assert listed == {(place, q, str(when)) for place, q, when in self.wanted}
            assert self.run.status().step == self.step

    def compare(self, source: Any) -> None:
        """Every measured value is there, and nothing else is."""
        logged = {"loss": self.logged, "val_loss": self.validated}
        wanted = {**self.values, **{("(root)", name): values for name, values in logged.items()}}
        data = source.data
        for (place, quantity), values in wanted.items():
            if not values:
                continue
            series = source.series(place, quantity)
            assert series.step.values.tolist() == sorted(values)
            np.testing.assert_allclose(
                series.values, [values[step] for step in sorted(values)], rtol=1e-4, atol=1e-6
            )
            joined = data[quantity].sel(module=place).load().dropna("step")
            assert series.drop_vars("time").identical(joined.drop_vars("time"))
            one_time = ~np.isin(series.step, [*self.validated])  # a state has its own
            assert (series.time.values == joined.time.values)[one_time].all()
        n_measured = sum(
            int(data[quantity].notnull().sum())
            for quantity in data.data_vars
            if quantity != "calls"
        )
        assert n_measured == sum(map(len, wanted.values()))
        try:
            source.series("first", "never_there")
        except UnknownNameError:
            return
        raise AssertionError("an unknown quantity was found")

    def outputs(self, batches: Tensor) -> dict[str, Any]:
        """Outputs of the layers in float64, past every hook."""
        given = batches.detach().double()
        return {
            place: self.numbers(
                given @ self.model.get_parameter(f"{place}.weight").double().T
                + self.model.get_parameter(f"{place}.bias").double()
            )
            for place in PLACES
        }

    @staticmethod
    def numbers(tensor: Tensor) -> Any:
        return tensor.detach().double().numpy()


TestRecorded = Recorded.TestCase
TestRecorded.settings = settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_the_oracle_itself_tells_a_wrong_value() -> None:
    machine = Recorded()
    machine.begin()
    try:
        machine.attach("first", "output_mean", Every(1))
        machine.train(frozenset(PLACES), 1, 0)
        machine.compare(machine.run)
        machine.values["first", "output_mean"][0] += 1.0
        try:
            machine.compare(machine.run)
        except AssertionError:
            machine.values["first", "output_mean"][0] -= 1.0
        else:
            raise AssertionError("a wrong value passed")
        assert math.isfinite(machine.values["first", "output_mean"][0])
    finally:
        machine.teardown()
