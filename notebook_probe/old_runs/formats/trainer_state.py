"""Hugging Face Trainer: ``trainer_state.json`` of an output folder or a checkpoint."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from notebook_probe.errors import RecordFormatError
from notebook_probe.old_runs.formats.lines import step_of
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.run import OldRun
from notebook_probe.record.format.loss_names import names_evaluation

__all__ = ["TrainerStateFormat"]

STATE = "trainer_state.json"
CHECKPOINT = re.compile(r"checkpoint-(\d{1,18})")
MOST_BYTES = 64 << 20
"""JSON is parsed as a whole, which takes up to ten times its size in memory."""
SETTINGS = (
    "train_batch_size",
    "num_train_epochs",
    "max_steps",
    "logging_steps",
    "eval_steps",
    "save_steps",
)
RESULTS = ("best_metric", "best_model_checkpoint", "best_global_step", "total_flos")
SUMMARY = "train_runtime"
"""A row that has it sums up the whole training."""


class TrainerStateFormat(OldFormat):
    """The state of a Trainer; of an output folder, that of its newest checkpoint."""

    tool = "Hugging Face Trainer"

    def in_file(self, path: Path, head: bytes) -> bool:
        return path.name == STATE and head.lstrip().startswith(b"{")

    def in_folder(self, folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
        if STATE in names:
            return (folder / STATE,)
        steps = sorted(int(found[1]) for found in map(CHECKPOINT.fullmatch, names) if found)
        states = (folder / f"checkpoint-{step}" / STATE for step in reversed(steps))
        return next(((state,) for state in states if state.is_file()), ())

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        path = files[0]
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise RecordFormatError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
        state = json.loads(path.read_bytes())
        rows = state.get("log_history") if isinstance(state, dict) else None
        if not isinstance(rows, list):
            raise RecordFormatError(f"{path} has no log_history, which a Trainer writes")
        notes: dict[str, Any] = {name: state[name] for name in RESULTS if state.get(name)}
        with points.reading(path.name):
            for row in rows:
                if isinstance(row, Mapping):
                    _add(row, points, notes)
        last, most = step_of(state.get("global_step")), step_of(state.get("max_steps"))
        return OldRun(
            self.tool,
            _name(path),
            series=points.series(),
            config={name: state[name] for name in SETTINGS if name in state},
            notes=notes,
            has_ended=None if not last or not most else last >= most,
        )


def _add(row: Mapping[str, Any], points: Points, notes: dict[str, Any]) -> None:
    """Add a row: evaluations at the state of their step, other numbers at the update before it."""
    step = step_of(row.get("step"))
    values = {name: value for name, value in row.items() if name not in ("step", "epoch")}
    if step is None:
        return
    if SUMMARY in values:
        notes["train"] = values
        return
    # Trainer counts completed updates: what it logs at step 10 is of update 9, counted from 0.
    for name, value in values.items():
        points.add_all({name: value}, step if names_evaluation(name) else max(0, step - 1), 0.0)


def _name(path: Path) -> str:
    folder = path.absolute().parent
    return folder.parent.name if CHECKPOINT.fullmatch(folder.name) else folder.name
