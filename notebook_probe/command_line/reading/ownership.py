"""Reading which modules train, and in which parameter groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from notebook_probe.command_line.reading.answers import GroupLine
from notebook_probe.record.format.notes import TRAINED, read_notes

__all__ = ["GroupOwnership"]


@dataclass(frozen=True, slots=True)
class GroupOwnership:
    """Parameter groups, and modules with their own parameters; empty where it is not recorded."""

    groups: tuple[GroupLine, ...] = ()
    trainable: Mapping[str, bool] = field(default_factory=dict)
    """State of each module's own parameters: True if they require gradients."""
    held_by: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Numbers of the groups that hold each module's own parameters."""

    @classmethod
    def read(cls, attrs: Mapping[str, Any]) -> GroupOwnership:
        """Read it from the attributes of a record; what is malformed is left out."""
        found = read_notes(attrs, TRAINED)
        groups = [one for one in _listed(found.get("groups")) if isinstance(one, dict)]
        alike = [one for one in _listed(found.get("modules")) if isinstance(one, dict)]
        named = [(name, one) for one in alike for name in _listed(one.get("names"))]
        known = [(name, one) for name, one in named if isinstance(name, str)]
        return cls(
            tuple(_group(number, one) for number, one in enumerate(groups)),
            {name: one.get("trainable") is True for name, one in known},
            {name: _numbers(one.get("groups"), len(groups)) for name, one in known},
        )


def _group(number: int, found: Mapping[str, Any]) -> GroupLine:
    rate = found.get("lr")
    return GroupLine(
        number,
        str(found.get("optimizer", "")),
        float(rate) if isinstance(rate, int | float) else None,
        str(found.get("contents", "")),
    )


def _listed(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _numbers(found: object, n_groups: int) -> tuple[int, ...]:
    return tuple(one for one in _listed(found) if type(one) is int and 0 <= one < n_groups)
