"""Files of other tools, made by ``make_old_runs.py``, and some that are like theirs."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.old_runs import OldRun, find_old_run

FILES = Path(__file__).parent / "files"
EXPECTED: dict[str, Any] = json.loads((FILES / "expected.json").read_text())
(WANDB,) = FILES.glob("wandb/offline-*")
TENSORBOARD = FILES / "tensorboard" / "first"
MLFLOW = sorted(FILES.glob("mlruns/*/*"))


def database(folder: Path, tool: str) -> Path:
    """A SQLite file with what the tool has written."""
    path = folder / f"{tool}.db"
    connection = sqlite3.connect(path)
    connection.executescript((FILES / f"{tool}.sql").read_text())
    connection.close()
    return path


def read(path: Path) -> OldRun:
    place = find_old_run(path)
    assert place is not None
    return place.read()


def values(run: OldRun, name: str) -> dict[int, float]:
    (found,) = (one for one in run.series if one.name == name)
    return dict(zip(found.steps.tolist(), found.values.tolist(), strict=True))


def number(value: Any) -> float:
    return float(value)  # "NaN" and "Infinity", too


def assert_same(found: dict[int, float], expected: dict[int, float]) -> None:
    assert [*found] == [*expected]
    np.testing.assert_array_equal([*found.values()], [*expected.values()])


def trainer_state(folder: Path, step: int = 30, most: int = 30) -> Path:
    """The state that a Trainer saves after so many of its steps."""
    history: list[dict[str, float]] = []
    for at in range(10, step + 1, 10):
        history.append({"epoch": at / 10, "loss": 2.0 / at, "learning_rate": 0.1, "step": at})
        history.append({"epoch": at / 10, "eval_loss": 3.0 / at, "step": at})
    if step == most:
        history.append({"train_loss": 0.1, "train_runtime": 9.0, "step": step})
    state = {
        "best_metric": 0.1,
        "global_step": step,
        "max_steps": most,
        "train_batch_size": 8,
        "log_history": history,
    }
    path = folder / f"checkpoint-{step}" / "trainer_state.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(state, indent=2) + "\n")
    return path


LIGHTNING = """epoch,lr-SGD,step,train_loss,val_loss
0,,4,2.5,
0,,9,1.5,
0,,9,,2.25
0,0.1,9,,
1,,14,0.5,
"""


def lightning(folder: Path) -> Path:
    """The folder of a CSVLogger."""
    place = folder / "version_0"
    place.mkdir(parents=True)
    (place / "metrics.csv").write_text(LIGHTNING)
    (place / "hparams.yaml").write_text("batch_size: 8\nnet:\n  depth: 3\n  act: relu\n")
    return place


def float32(numbers: Any) -> npt.NDArray[np.float32]:
    return np.asarray(numbers, np.float32)
