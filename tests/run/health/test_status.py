"""The head of a status is of no probe; quantities are described once per change of the registry."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import pytest
from torch import Tensor, nn

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
    run.controls.settle()
    status = run.status()
    assert status.n_probes == len(status.probes) > 0

    def refuses(*_: object) -> None:
        raise AssertionError("looked at the probes")

    monkeypatch.setattr(ProbeStatuses, "of", refuses)
    head = run.controls.status_head()
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
    rows = run.attachable()
    assert described == [row.name for row in rows] == list(quantities)
    run.attachable()
    assert len(described) == len(rows)

    @nbp.quantity(name="test_status_new")
    def new(output: Tensor) -> Tensor:
        """Something new."""
        return output.sum()

    assert "test_status_new" in [row.name for row in run.attachable()]


@pytest.mark.slow
def test_it_says_how_much_room_each_quantity_takes(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"*": ["output_histogram", "weight_norm"]})
    optimizer = sgd(model)
    for step in range(300):
        train_step(model, optimizer, floats(5, 4)(step))
        run.log(loss=step)
    run.close()  # until then the last chunk of each array has room for more
    status = run.status()
    sizes = status.quantity_bytes
    assert next(iter(sizes)) == "output_histogram"
    assert {"weight_norm", "loss", "calls", "step"} <= {*sizes}
    folder = Path(run.location)
    for name, n_bytes in sizes.items():
        arrays = [*folder.glob(f"[!p]*/*/{name}"), *folder.glob(f"pyramid/*/*/{name}")]
        for end in ("min", "max", "mean"):
            arrays += folder.glob(f"pyramid/*/*/{name}_{end}")
        chunks = [path for array in arrays for path in (array / "c").rglob("*") if path.is_file()]
        assert n_bytes == sum(path.stat().st_size for path in chunks), name
    assert sum(sizes.values()) < status.nbytes
    assert f"on disk: output_histogram {sizes['output_histogram'] / 1e3:.3g} kB, " in str(status)
