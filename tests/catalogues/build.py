"""Small records, made by the one who writes all of them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from notebook_probe.catalogues import Runs
from notebook_probe.record import RecordWriter, Variable
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.schema import LOGGED_BY, LOGGED_OF_STATES
from notebook_probe.record.format.source import ROOT
from notebook_probe.record.store.location import Location

BEGUN_MS = 1_700_000_000_000


@contextmanager
def writing(
    place: Location,
    losses: Sequence[float] = (2.0, 1.0),
    config: Mapping[str, Any] = MappingProxyType({}),
    **more: Any,
) -> Iterator[RecordWriter]:
    """A writer that has logged a loss of each step; it is closed in the end."""
    name = more.pop("title", Path(str(place)).stem)
    with RecordWriter(place, title=name, modules=[], **more) as writer:
        writer.annotate(config=json.dumps(dict(config)))
        log(writer, losses)
        yield writer


def log(writer: RecordWriter, losses: Sequence[float], name: str = "loss") -> None:
    stream = writer.stream("every_1")
    stream.extend([ROOT], [Variable(name, "1", LOGGED_BY)])
    for step, loss in enumerate(losses, stream.last_step + 1):
        stream.record(step, BEGUN_MS + step, as_measured([[loss]]))


def evaluate(writer: RecordWriter, state: int, value: float, name: str = "accuracy") -> None:
    stream = writer.stream(LOGGED_OF_STATES)
    stream.extend([ROOT], [Variable(name, "1", LOGGED_BY)])
    stream.record(state, BEGUN_MS, np.full(stream.shape, value, np.float32))


def recorded(place: Location, losses: Sequence[float] = (2.0, 1.0), **config: Any) -> Path:
    """A finished record."""
    with writing(place, losses, config):
        pass
    return Path(str(place))


def names(runs: Runs) -> list[str]:
    """What the runs of a table are called, sorted."""
    return sorted(str(row["name"]) for row in runs)
