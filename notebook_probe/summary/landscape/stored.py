"""Snapshots of a folder, read when they are needed; no code in them is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from notebook_probe.errors import CheckpointError
from notebook_probe.summary.landscape.metadata import FOLDER, NAME, Metadata
from notebook_probe.summary.landscape.snapshot import ModelSnapshot

__all__ = ["StoredSnapshots"]

FEWEST = 3


@dataclass(frozen=True, slots=True)
class StoredSnapshots:
    """Stored snapshots of a training.

    Attributes
    ----------
    folder : Path
        Folder of the files.
    metadata : Metadata
    """

    folder: Path
    metadata: Metadata

    @classmethod
    def at(cls, folder: str | Path) -> StoredSnapshots:
        """Open a summary folder, or its folder of snapshots.

        Raises
        ------
        CheckpointError
            There are none.
        """
        given = Path(folder)
        for own in (given / FOLDER, given):
            if (own / NAME).is_file():
                return cls(own, Metadata.parsed((own / NAME).read_bytes(), str(own / NAME)))
        raise CheckpointError(
            f"no {NAME} in {given}: a SummaryCollector writes it, with "
            f"collect_specified_data={{'collect_landscape': {{...}}}}"
        )

    def read(self, number: int) -> ModelSnapshot:
        """Read a snapshot; its tensors stay in the file until they are needed.

        Raises
        ------
        CheckpointError
            The file does not exist, is damaged, or contains types that may not be read.
        """
        path = self.folder / self.metadata.files[number]
        try:
            # weights_only: no code from a file runs. mmap: a path has many snapshots of a whole
            # model.
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:
            first = f"{error}".strip().partition("\n")[0]
            raise CheckpointError(
                f"{path} cannot be read as a snapshot: {type(error).__name__}: {first}"
            ) from error
        return ModelSnapshot.read(state if isinstance(state, dict) else {}, str(path))

    def path(self, interval: int = -1) -> list[ModelSnapshot]:
        """Read the snapshots of an interval that has three; the last one by default.

        Raises
        ------
        CheckpointError
            There are fewer.
        """
        drawable = [path for path in self.metadata.paths if len(path) >= FEWEST]
        try:
            numbers = drawable[interval]
        except IndexError:
            there = "; ".join(_words(path) for path in self.metadata.paths)
            raise CheckpointError(
                f"interval={interval}: {len(drawable)} of the intervals in {self.folder} have "
                f"{FEWEST} snapshots or more; there are: {there}"
            ) from None
        return [self.read(number) for number in numbers]

    def last(self) -> ModelSnapshot:
        """Return the last snapshot of the last interval that has any.

        Raises
        ------
        CheckpointError
            There is none.
        """
        there = [path for path in self.metadata.paths if path]
        if not there:
            raise CheckpointError(f"no snapshot in {self.folder}")
        return self.read(there[-1][-1])


def _words(path: tuple[int, ...]) -> str:
    return ", ".join(map(str, path)) or "none"
