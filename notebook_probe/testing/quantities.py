"""Tests that apply to every quantity, also users' own."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import cross_entropy

from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import select
from notebook_probe.opened import open_run
from notebook_probe.quantities import Quantity, as_quantity, quantities
from notebook_probe.run.attach.request import misfit
from notebook_probe.run.health.status import ProbeStatus
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch
from notebook_probe.testing.cases import CASES, CLASSES, Case, train

__all__ = ["UNUSUAL", "QuantitySuite"]

UNUSUAL: dict[str, Callable[[Tensor], Tensor]] = {
    "NaN": lambda x: x.masked_fill(x > 1, math.nan),
    "infinite": lambda x: x.masked_fill(x > 1, math.inf),
    "constant": torch.ones_like,
    "zero": torch.zeros_like,
    "huge": lambda x: x * 1e37,
    "tiny": lambda x: x * 1e-38,
    "one sample": lambda x: x[:1],
}
"""Changes to an ordinary batch; a quantity must return a number or a missing value."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Result of a training with everything attached."""

    weights: dict[str, Tensor]
    probes: tuple[ProbeStatus, ...]
    live: xr.Dataset
    """Data of the run at its end."""
    stored: xr.Dataset
    """Data read from the record."""
    n_alive: int
    """Activations that were still there after the last step."""


class QuantitySuite:
    """Tests that every quantity passes: inherit it, and say which quantities are meant.

    Attributes
    ----------
    quantities : sequence of Quantity, function or str
        Quantities to test, all of them in one training.
    cases : mapping of str to Case
        The models that are trained; each quantity has to give a number in one of them.
    places : sequence of str
        Places to attach them where they fit: paths and globs.
    steps : int
        Number of training steps.

    Examples
    --------
    >>> class TestSizes(QuantitySuite):
    ...     quantities = ("output_norm", "grad_norm")
    """

    quantities: ClassVar[Sequence[Quantity | Callable[..., Any] | str]] = ()
    cases: ClassVar[Mapping[str, Case]] = CASES
    places: ClassVar[Sequence[str]] = ("", "*")
    steps: ClassVar[int] = 10

    def test_it_says_what_it_is(self) -> None:
        for quantity in self._all():
            assert quantity.summary, f"{quantity.name} has no docstring"
            assert quantity.units, f"{quantity.name} has no units; '1' is a pure number"

    def test_it_is_found_by_its_name_and_its_aliases(self) -> None:
        for quantity in self._all():
            if quantity.name in quantities:  # a plain function is not registered
                for name in (quantity.name, *quantity.aliases):
                    assert as_quantity(name) is quantity, name

    def test_it_gives_a_number_somewhere(self) -> None:
        found = {p.quantity for case in self._trained().values() for p in case.probes if p.n_values}
        never = {quantity.name for quantity in self._all()} - found
        assert not never, f"{sorted(never)} gave no number in any of {', '.join(self.cases)}"

    def test_it_raises_nowhere(self) -> None:
        for name, case in self._trained().items():
            _check_no_errors(case.probes, name)

    def test_training_is_the_same_with_it_bit_for_bit(self) -> None:
        for name, case in self.cases.items():
            model = case.made()
            train(model, map(case.batch, range(self.steps)))
            for path, value in model.state_dict().items():
                assert torch.equal(value, self._trained()[name].weights[path]), f"{path} of {name}"

    def test_it_keeps_no_activation_alive(self) -> None:
        assert not any(case.n_alive for case in self._trained().values())

    def test_what_was_recorded_is_read_back(self) -> None:
        for case in self._trained().values():
            for quantity in self._all():
                if quantity.name in case.live:
                    found = case.stored[quantity.name]
                    assert found.attrs["units"] == quantity.units
                    np.testing.assert_array_equal(case.live[quantity.name], found)

    def test_no_unusual_number_makes_it_raise(self) -> None:
        for name, case in self.cases.items():
            model, ordinary = case.made(), case.batch(0)
            with self._watched(model, case) as run:
                changed = [change(ordinary) for change in UNUSUAL.values()]
                train(model, [ordinary, *changed, ordinary], run)
                _check_no_errors(run.status().probes, name)

    def test_half_precision_does_not_make_it_raise(self) -> None:
        for name, case in self.cases.items():
            model = case.made().bfloat16()
            with self._watched(model, case) as run:
                train(model, (case.batch(seed).bfloat16() for seed in range(2)), run)
                _check_no_errors(run.status().probes, name)

    @classmethod
    def _all(cls) -> list[Quantity]:
        assert cls.quantities, f"{cls.__name__}.quantities names none"
        return [as_quantity(one) for one in cls.quantities]

    @classmethod
    @cache
    def _trained(cls) -> dict[str, Trained]:
        """Train each case, once for all tests."""
        return {name: cls._train(case) for name, case in cls.cases.items()}

    @classmethod
    def _train(cls, case: Case) -> Trained:
        model, outputs = case.made(), list[StorageWeakRef]()
        for module in model.modules():
            module.register_forward_hook(_remember(outputs))
        with cls._watched(model, case) as run:
            train(model, map(case.batch, range(cls.steps)), run)
            probes = run.status().probes
            # Cycles would keep outputs alive, which is no fault of the quantity.
            gc.collect()
            n_alive = sum(not output.expired() for output in outputs)
            run.close()
            live, stored = run.data.load(), open_run(run.location).data.load()
        return Trained(model.state_dict(), probes, live, stored, n_alive)

    @classmethod
    @contextmanager
    def _watched(cls, model: nn.Module, case: Case) -> Iterator[Run]:
        """Yield a run with every quantity attached wherever it fits, and a temporary record."""
        model_map, chosen = ModelMap(model), cls._all()
        probes = {
            place: [q for q in chosen if _belongs(q, place) and not misfit(model_map, place, q)]
            for pattern in cls.places
            for place in select(model_map, pattern)
        }
        dtype = next(model.parameters()).dtype
        with TemporaryDirectory() as folder, watch(model, store=folder, probes=probes) as run:
            targets = torch.arange(case.shape[0]) % CLASSES
            run.probe_batch(case.batch(cls.steps).to(dtype), targets, _mean_loss)
            yield run


def _belongs(quantity: Quantity, place: str) -> bool:
    """Return whether it fits: targets belong to the model's output and are useless elsewhere."""
    return not place or not quantity.is_of_batch


def _mean_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return cross_entropy(outputs.float(), targets)


def _check_no_errors(probes: Iterable[ProbeStatus], case: str) -> None:
    failed = [
        f"{probe.quantity} at {probe.module!r} of {case}: {probe.error}"
        for probe in probes
        if probe.n_errors
    ]
    assert not failed, "\n".join(failed)


def _remember(kept: list[StorageWeakRef]) -> Callable[..., None]:
    """Return a hook that compares an output's memory, without keeping the output."""

    def hook(module: nn.Module, args: Any, output: Any) -> None:
        if isinstance(output, Tensor):
            kept.append(StorageWeakRef(output.untyped_storage()))

    return hook
