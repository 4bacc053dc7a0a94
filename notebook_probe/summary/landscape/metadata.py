"""The file next to the snapshots that describes them: ``train_metadata.json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from notebook_probe.errors import CheckpointError
from notebook_probe.summary.landscape.settings import LandscapeSettings

__all__ = ["FOLDER", "NAME", "Metadata"]

FOLDER, NAME = "ckpt_dir", "train_metadata.json"
FORMAT = 1
NONE: Mapping[int, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Metadata:
    """Existing snapshots and their settings.

    Attributes
    ----------
    network : str
        The class of the model.
    settings : LandscapeSettings
    files : mapping of int to str
        Names by number.
    losses : mapping of int to float
        Loss that training reported after the unit, if it is known and finite.
    steps_per_epoch : int or None
    """

    network: str
    settings: LandscapeSettings
    files: Mapping[int, str] = field(default_factory=lambda: NONE)
    losses: Mapping[int, float] = field(default_factory=lambda: NONE)
    steps_per_epoch: int | None = None

    def name_of(self, number: int) -> str:
        """Return the file name of a unit's snapshot."""
        return f"{self.network}_{number}_{self.settings.unit}.pt"

    def added(self, number: int, loss: float | None) -> Metadata:
        """Return the metadata with one more snapshot."""
        # JSON has no NaN; a missing loss means the same to a reader.
        known = {} if loss is None or not math.isfinite(loss) else {number: loss}
        files = {**self.files, number: self.name_of(number)}
        return replace(self, files=files, losses={**self.losses, **known})

    def up_to(self, number: int) -> Metadata:
        """Return the metadata for a training that continues there."""
        # Snapshots from beyond the point of continuation belong to another course.
        files = {own: name for own, name in self.files.items() if own <= number}
        return replace(self, files=files)

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """Numbers of the existing snapshots of each interval."""
        return [
            tuple(number for number in interval if number in self.files)
            for interval in self.settings.intervals
        ]

    def text(self) -> bytes:
        """Return the metadata as JSON, readable for anyone."""
        found = {
            "format": FORMAT,
            "network": self.network,
            "settings": self.settings.as_dict(),
            "steps_per_epoch": self.steps_per_epoch,
            "groups": self.paths,
            "files": {str(number): name for number, name in sorted(self.files.items())},
            "losses": {str(number): loss for number, loss in sorted(self.losses.items())},
        }
        return json.dumps(found, indent=1).encode()

    @classmethod
    def parsed(cls, content: bytes, where: str) -> Metadata:
        """Read what `text` wrote.

        Raises
        ------
        CheckpointError
            ``content`` is not a result of `text`.
        """
        try:
            found = json.loads(content)
            return cls(
                str(found["network"]),
                LandscapeSettings.of(found["settings"]),
                {int(number): _file(name) for number, name in found["files"].items()},
                {int(number): float(loss) for number, loss in found["losses"].items()},
                found["steps_per_epoch"],
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(
                f"{where} lists no snapshots: {type(error).__name__}: {error}"
            ) from error


def _file(name: str) -> str:
    # A name from a file must not lead out of the folder.
    if "/" in name or "\\" in name or name.startswith("."):
        raise ValueError(f"{name!r} is no file of its folder")
    return name
