"""Makes the files in ``tests/old_runs/files``, and what the tools themselves read in them.

Run it in an environment with wandb, tensorboard, trackio and mlflow-skinny, none of which tests
need: ``python tests/libraries/make_old_runs.py``. Values are written as each tool's users do;
``expected.json`` is what each tool itself reads back.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

STEPS = 12
FILES = Path(__file__).parents[1] / "old_runs" / "files"
FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else FILES).absolute()


def loss(step: int) -> float:
    return math.nan if step == 3 else 2.0 / (step + 1)


def accuracy(step: int) -> float:
    return math.inf if step == 4 else step / STEPS


def wandb_run() -> dict[str, Any]:
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
    import numpy as np
    import wandb

    made = FOLDER / "made"
    made.mkdir()
    settings = wandb.Settings(
        x_disable_stats=True, x_disable_meta=True, disable_git=True, console="off"
    )
    config = {"lr": 0.1, "model": {"depth": 3}, "sizes": [3, 4]}
    run = wandb.init(
        project="digits",
        name="first",
        dir=str(made),
        config=config,
        notes="a note",
        tags=["a", "b"],
        settings=settings,
    )
    run.define_metric("val/*", step_metric="trainer/global_step")
    for step in range(STEPS):
        row: dict[str, Any] = {"loss": loss(step), "acc": accuracy(step), "opt": {"lr": 0.5**step}}
        if step % 4 == 3:
            row |= {"val/loss": 1.0 / step, "trainer/global_step": 10 * step}
        if step == 0:
            edges = np.histogram(np.arange(10.0), bins=4)
            row["gradients/body.0.weight"] = wandb.Histogram(np_histogram=edges)
        run.log(row)
    run.alert(title="odd", text="loss is nan")
    run.finish()
    wandb.teardown()  # the file is whole once its writer has ended
    (file,) = made.rglob("*.wandb")
    target = FOLDER / "wandb" / f"offline-{run.id}" / f"run-{run.id}.wandb"
    target.parent.mkdir(parents=True)
    shutil.copy(file, target)
    shutil.rmtree(made)
    command = [str(Path(sys.executable).parent / "wandb"), "leet", "inspect", str(target), "--json"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [one["history"] for one in map(json.loads, lines) if one["type"] == "history"]
    return {"rows": rows}


def tensorboard_run() -> dict[str, Any]:
    import numpy as np
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util

    folder = FOLDER / "tensorboard" / "first"
    plugin = SummaryMetadata.PluginData(plugin_name="scalars")
    for part in range(2):
        writer = EventFileWriter(str(folder), filename_suffix=f".part{part}")
        for step in range(part * STEPS // 2, (part + 1) * STEPS // 2):
            values = [
                Summary.Value(tag="train/loss", simple_value=loss(step)),
                Summary.Value(tag="acc", simple_value=accuracy(step)),
                Summary.Value(tag="grad_norm/body.0.weight", simple_value=0.5 + step),
            ]
            if step % 4 == 3:
                tensor = tensor_util.make_tensor_proto(np.float32(1 / step))
                metadata = SummaryMetadata(plugin_data=plugin)
                values.append(Summary.Value(tag="val/loss", tensor=tensor, metadata=metadata))
                counts, edges = np.histogram(np.arange(10.0) * step, bins=4)
                bins = np.stack([edges[:-1], edges[1:], counts], axis=1)
                metadata = SummaryMetadata(
                    plugin_data=SummaryMetadata.PluginData(plugin_name="histograms")
                )
                tensor = tensor_util.make_tensor_proto(bins)
                values.append(Summary.Value(tag="fc.bias", tensor=tensor, metadata=metadata))
                # As PyTorch writes them: an empty bin below the first edge.
                histogram = HistogramProto(
                    min=0.0,
                    max=9.0 * step,
                    num=10,
                    bucket_limit=edges.tolist(),
                    bucket=[0, *counts.tolist()],
                )
                values.append(Summary.Value(tag="fc.weight.grad", histo=histogram))
            writer.add_event(
                Event(wall_time=1.7e9 + step, step=step, summary=Summary(value=values))
            )
        if not part:
            start = plugin_data_pb2.SessionStartInfo()
            start.hparams["lr"].number_value = 0.1
            start.hparams["optimizer"].string_value = "SGD"
            start.hparams["nesterov"].bool_value = True
            content = plugin_data_pb2.HParamsPluginData(session_start_info=start)
            data = SummaryMetadata.PluginData(
                plugin_name="hparams", content=content.SerializeToString()
            )
            value = Summary.Value(
                tag="_hparams_/session_start_info", metadata=SummaryMetadata(plugin_data=data)
            )
            writer.add_event(Event(wall_time=1.7e9, step=0, summary=Summary(value=[value])))
        writer.close()
    sizes = {"scalars": 0, "tensors": 0, "histograms": 0}
    read = EventAccumulator(str(folder), size_guidance=sizes).Reload()
    series = {
        tag: [[one.step, one.value, one.wall_time] for one in read.Scalars(tag)]
        for tag in read.Tags()["scalars"]
    }
    for tag in read.Tags()["tensors"]:
        if tag not in ("_hparams_/session_start_info", "fc.bias"):
            found = read.Tensors(tag)
            series[tag] = [
                [one.step, float(tensor_util.make_ndarray(one.tensor_proto)), one.wall_time]
                for one in found
            ]
    tensors = {
        one.step: tensor_util.make_ndarray(one.tensor_proto).tolist()
        for one in read.Tensors("fc.bias")
    }
    protos = {
        one.step: [one.histogram_value.bucket_limit, one.histogram_value.bucket]
        for one in read.Histograms("fc.weight.grad")
    }
    return {"series": series, "tensors": tensors, "protos": protos}


def trackio_runs() -> dict[str, Any]:
    made = FOLDER / "made"
    os.environ.update(TRACKIO_DIR=str(made), HF_HUB_OFFLINE="1")
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    for name in ("first", "second/a"):
        trackio.init(project="digits", name=name, config={"lr": 0.1, "model": {"depth": 3}})
        for step in range(STEPS):
            row = {"loss": loss(step), "acc": accuracy(step), "text": "no number"}
            trackio.log(row, step=5 * step)
        trackio.finish()
    found = {name: SQLiteStorage.get_logs("digits", name) for name in ("first", "second/a")}
    dump(made / "digits.db", ("metrics", "configs"), FOLDER / "trackio.sql")
    shutil.rmtree(made)
    return {"logs": found}


def mlflow_runs() -> dict[str, Any]:
    os.environ.update(MLFLOW_ALLOW_FILE_STORE="true", LOGNAME="user")
    import mlflow

    made = FOLDER / "made"
    made.mkdir()
    found = {}
    for uri in (f"sqlite:///{made}/mlflow.db", f"file://{made}/mlruns"):
        mlflow.set_tracking_uri(uri)
        mlflow.set_experiment("digits")
        for name in ("first", "second"):
            with mlflow.start_run(run_name=name) as run:
                mlflow.log_params({"lr": 0.1, "optimizer": "SGD", "nesterov": True})
                mlflow.set_tag("kept", "yes")
                for step in range(STEPS):
                    mlflow.log_metric("train/loss", loss(step), step=step)
                    mlflow.log_metric("acc", accuracy(step), step=step)
            client = mlflow.MlflowClient(uri)
            found[run.info.run_id] = {
                key: [
                    [one.step, one.value, one.timestamp]
                    for one in client.get_metric_history(run.info.run_id, key)
                ]
                for key in ("train/loss", "acc")
            }
    dump(made / "mlflow.db", ("runs", "metrics", "params", "tags"), FOLDER / "mlflow.sql")
    for about in made.glob("mlruns/*/*/meta.yaml"):
        target = FOLDER / "mlruns" / about.parent.parent.name / about.parent.name
        shutil.copytree(about.parent, target)
        for tag in target.glob("tags/mlflow.source*"):
            tag.unlink()
        scrub(target / "meta.yaml")
    shutil.rmtree(made)
    return found


def dump(database: Path, tables: tuple[str, ...], target: Path) -> None:
    """Write some tables as text: the files themselves are large."""
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        others = connection.execute(
            "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
        ).fetchall()
        if "tags" in tables:
            connection.execute("DELETE FROM tags WHERE key LIKE 'mlflow.source%'")
        for kind, name in others:
            if kind in ("view", "index", "trigger") or name not in tables:
                connection.execute(f'DROP {kind} IF EXISTS "{name}"')
        target.write_text("\n".join(connection.iterdump()) + "\n")
    scrub(target)


def scrub(file: Path) -> None:
    """Replace the folders of this machine."""
    text = file.read_text()
    for folder in (str(FOLDER), str(Path.cwd())):
        text = text.replace(folder, "/home/user")
    file.write_text(text)


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    makers = wandb_run, tensorboard_run, trackio_runs, mlflow_runs
    expected = {make.__name__: make() for make in makers}
    text = json.dumps(expected, default=str).replace(str(FOLDER), "FOLDER")
    (FOLDER / "expected.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
