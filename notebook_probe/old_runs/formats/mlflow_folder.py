"""MLflow's folders: ``mlruns/EXPERIMENT/RUN`` with a file for each metric, parameter and tag."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from notebook_probe.old_runs.formats.lines import lines_of, step_of
from notebook_probe.old_runs.formats.mlflow_sqlite import ended_well, setting
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.formats.plain_yaml import read_yaml
from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.run import OldRun

__all__ = ["MlflowFolderFormat"]

ABOUT, METRICS, PARAMS, TAGS = "meta.yaml", "metrics", "params", "tags"
MOST_FILES = 10_000
LONGEST = 1 << 16
STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}


class MlflowFolderFormat(OldFormat):
    """A folder for each run; newer versions of MLflow refuse to open it."""

    tool = "MLflow"
    owns_folder = True

    def in_folder(self, folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
        if ABOUT not in names or not {METRICS, PARAMS} & {*names}:
            return ()
        return (folder / ABOUT, *_files_below(folder / METRICS))

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        about, *metrics = files
        folder = about.parent
        facts = read_yaml(about, points)
        for file in metrics:
            name = file.relative_to(folder / METRICS).as_posix()
            with points.reading(f"{METRICS}/{name}"):
                _read_metric(file, name, points)
        params = {path.name: setting(_text(path)) for path in _files_below(folder / PARAMS)}
        tags = {path.name: _text(path) for path in _files_below(folder / TAGS)}
        own = {name: value for name, value in tags.items() if not name.startswith("mlflow.")}
        run_id = str(facts.get("run_id") or folder.name)
        started = facts.get("start_time")
        return OldRun(
            tool=self.tool,
            name=str(facts.get("run_name") or tags.get("mlflow.runName") or run_id),
            run_id=run_id,
            series=points.series(),
            config=params,
            notes={"tags": own} if own else {},
            created_ms=started if isinstance(started, int) else 0,
            has_ended=ended_well(STATUS.get(_whole(facts.get("status")), "")),
        )


def _read_metric(file: Path, name: str, points: Points) -> None:
    """Read lines of ``timestamp value step``; old versions wrote no step."""
    for n, line in enumerate(lines_of(file, points)):
        parts = line.split()
        if len(parts) not in (2, 3):
            continue
        step = step_of(parts[2]) if len(parts) == 3 else n
        try:
            time_ms, value = float(parts[0]), float(parts[1])
        except ValueError:
            continue
        if step is not None:
            points.add(name, step, time_ms, value)


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield plain files, in order; links are not followed."""
    n = 0
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(above, name)
            if path.is_file() and not path.is_symlink() and (n := n + 1) <= MOST_FILES:
                yield path


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(LONGEST).decode(errors="replace")


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0
