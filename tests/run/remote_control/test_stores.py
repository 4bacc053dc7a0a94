"""The mailbox in stores that are no folder of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning
from notebook_probe.record.store.files import MAILBOX
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import SingleObjects
from notebook_probe.run.attach.requests import Attach, Control
from tests.models import sgd, train_step
from tests.record.conftest import s3
from tests.record.stores import location_of, new_store
from tests.run.conftest import Watch
from tests.run.loops import batch, training
from tests.run.remote_control.conftest import Ask

__all__ = ["s3"]  # a fixture

KINDS = ["memory", "directory", "zarr", pytest.param("s3", marks=pytest.mark.s3)]


@pytest.mark.slow
@pytest.mark.usefixtures("only_mailbox")
@pytest.mark.parametrize("kind", KINDS)
def test_a_training_is_reached_through_its_store(
    kind: str,
    watch: Watch,
    model: nn.Module,
    tmp_path: Path,
    ask: Ask,
    request: pytest.FixtureRequest,
) -> None:
    store = new_store(kind, tmp_path, request)
    place = location_of(store, tmp_path)
    run = watch(model, store=place, probes=None, control=True)
    train_step(model, sgd(model), batch(0))
    run.flush()
    with training(run, model):
        attached = ask(place, Attach(("0",), "output_rms"))
        assert attached.answer is not None
        assert (attached.way, attached.answer.state) == ("mailbox", "applied")
        refused = ask(place, Attach(("9",), "output_rms")).answer
        assert refused is not None
        assert refused.text.startswith("no module matches '9'")
        ask(place, Control("stop"))
    run.close()
    record = nbp.open_run(place)
    assert record.finished
    assert "output_rms" in record.data
    assert [one.kind for one in record.events].count("remote") == 3
    engine = engine_of(place)
    assert isinstance(engine, SingleObjects)
    assert engine.sizes(f"{MAILBOX}/") == {}


@pytest.mark.usefixtures("only_mailbox")
def test_a_repository_of_icechunk_has_no_mailbox_and_says_so(
    watch: Watch, model: nn.Module, tmp_path: Path
) -> None:
    pytest.importorskip("icechunk")
    place = location_of(new_store("icechunk", tmp_path), tmp_path)
    with pytest.warns(RecordWarning, match="this kind of store has no mailbox"):
        watch(model, store=place, probes=None, control=True)
