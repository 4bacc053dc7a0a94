"""The head of a status is of no probe; quantities are described once per change of the registry."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.quantities import quantities
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.run.health import catalogue
from notebook_probe.run.health.probe_statuses import ProbeStatuses
from notebook_probe.run.health.status import QuantityInfo, StatusHead
from tests.models import floats, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(4, 4)


def test_the_head_says_what_the_status_says_and_looks_at_no_probe(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = mlp()
    run = watch(model)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
    run.settle()
    status = run.status()
    assert status.n_probes == len(status.probes) > 0

    def refuses(*_: object) -> None:
        raise AssertionError("looked at the probes")

    monkeypatch.setattr(ProbeStatuses, "of", refuses)
    head = run.status_head()
    aged = {"flushed_age_s", "nbytes"}
    for name in {one.name for one in fields(StatusHead)} - aged:
        assert getattr(head, name) == getattr(status, name), name
    assert head.nbytes >= status.nbytes
    assert math.isnan(status.flushed_age_s) or head.flushed_age_s >= status.flushed_age_s
    assert status.head.step == head.step


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the quantities that have been described."""
    names: list[str] = []
    info = catalogue._info

    def counted(quantity: Quantity) -> QuantityInfo:
        names.append(quantity.name)
        return info(quantity)

    monkeypatch.setattr(catalogue, "_info", counted)
    return names


def test_quantities_are_described_once_until_one_is_registered(
    watch: Watch, described: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantities, "_members", {**quantities._members})
    run = watch(mlp(), probes=None)
    rows = run.catalogue()
    assert described == [row.name for row in rows] == list(quantities)
    run.catalogue()
    assert len(described) == len(rows)

    @nbp.quantity(name="test_status_new")
    def new(output: Tensor) -> Tensor:
        """Something new."""
        return output.sum()

    assert "test_status_new" in [row.name for row in run.catalogue()]
