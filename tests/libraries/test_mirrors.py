"""Real loggers, offline: what each has stored is read back, and is what the record has."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import wandb
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter
from wandb.proto.wandb_internal_pb2 import Record

import notebook_probe as nbp
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch
from tests.run.mirror.loggers import Points, recorded, same

pytestmark = pytest.mark.libraries

batch = floats(5, 4)
N_STEPS = 30
BLOCK, HEADER, WHOLE, LAST = 32768, 7, 1, 4

Begun: TypeAlias = tuple[Any, Callable[[], Points]]
"""A logger, and what ends it and reads all that it has stored."""


def of_wandb(folder: Path) -> Begun:
    run = wandb.init(
        project="digits", dir=folder, mode="offline", settings=wandb.Settings(silent=True)
    )

    def read() -> Points:
        run.finish()
        wandb.teardown()  # its service writes the file, and may do so after the run is finished
        return wandb_points(folder)

    return run, read


def wandb_points(folder: Path) -> Points:
    [file] = folder.rglob("*.wandb")
    points: Points = {}
    for record in _wandb_records(file):
        items = {item.key or item.nested_key[0]: item for item in record.history.item}
        step = record.history.step.num
        points |= {
            (tag, step): float(json.loads(item.value_json))
            for tag, item in items.items()
            if not tag.startswith("_")
        }
    return points


def _wandb_records(file: Path) -> Iterator[Record]:
    """Of a log in LevelDB's form: blocks of pieces, each after a checksum, its size and kind."""
    data, whole, at = file.read_bytes(), b"", 7
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        at += HEADER + size
        whole += data[at - size : at]
        if kind in (WHOLE, LAST):
            record = Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


def of_tensorboard(folder: Path) -> Begun:
    writer = SummaryWriter(folder / "board")

    def read() -> Points:
        writer.close()
        events = EventAccumulator(str(folder / "board"), size_guidance={"scalars": 0})
        events.Reload()
        return {
            (tag, event.step): event.value
            for tag in events.Tags()["scalars"]
            for event in events.Scalars(tag)
        }

    return writer, read


def of_trackio(folder: Path) -> Begun:
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    run = trackio.init(project=folder.name, name="first")

    def read() -> Points:
        trackio.finish()
        logs = SQLiteStorage.get_logs(folder.name, "first")
        return {
            (tag, row["step"]): float(value)
            for row in logs
            for tag, value in row.items()
            if tag not in {"step", "timestamp"}
        }

    return run, read


def of_mlflow(folder: Path) -> Begun:
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    run_id = mlflow.start_run().info.run_id

    def read() -> Points:
        mlflow.end_run()
        client = mlflow.MlflowClient()
        return {
            (tag, point.step): math.inf if point.value == sys.float_info.max else point.value
            for tag in client.get_run(run_id).data.metrics
            for point in client.get_metric_history(run_id, tag)
        }

    return mlflow, read


LOGGERS = {
    "wandb": of_wandb,
    "tensorboard": of_tensorboard,
    "trackio": of_trackio,
    "mlflow": of_mlflow,
}
ELSEWHERE = "trackio", "mlflow"
"""Not among the pins: what they need contradicts what matplotlib and diffusers have there."""


@pytest.mark.filterwarnings("ignore:The ``noload`` loader")
@pytest.mark.parametrize("kind", LOGGERS)
def test_a_logger_has_stored_what_the_record_has(kind: str, watch: Watch, tmp_path: Path) -> None:
    if kind in ELSEWHERE:
        pytest.importorskip(kind)
    logger, read = LOGGERS[kind](tmp_path)
    model = made(mlp)
    run = watch(model, probes={"*": ["output_norm", ["grad_norm", "every(3)"]]})
    run.mirror(logger)
    optimizer = sgd(model)
    for step in range(N_STEPS):
        train(model, optimizer, batch, [step])
        run.log({"train/loss": 1 / (step + 1), "odd": math.nan if step == 2 else math.inf})
        if step % 10 == 0:
            run.log(val_loss=step + 0.5, phase="eval")
    run.close()
    stored, expected = read(), recorded(nbp.open_run(run.location))
    assert {tag for tag, _ in stored} >= {"0/grad_norm", "train/loss", "odd", "val_loss"}
    assert stored.keys() == expected.keys()
    assert same(stored, expected)


PROGRAM = """
import sys
import wandb
import notebook_probe as nbp
from tests.models import floats, made, mlp, sgd, train

model = made(mlp)
run = nbp.watch(model, store=f"{sys.argv[1]}/run.zarr", budget=None)
run.mirror(wandb.init(project="digits", dir=sys.argv[1], mode="offline"))
train(model, sgd(model), floats(5, 4), range(5))
"""


def test_a_program_that_closes_nothing_leaves_wandb_with_every_step(tmp_path: Path) -> None:
    of_its_own = {key: value for key, value in os.environ.items() if key != "WANDB_SERVICE"}
    subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], check=True, env=of_its_own)
    assert same(wandb_points(tmp_path), recorded(nbp.open_run(tmp_path / "run.zarr")))
