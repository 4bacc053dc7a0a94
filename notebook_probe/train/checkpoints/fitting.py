"""Matching of a checkpoint's entries with a model; compared before anything is changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

from notebook_probe.errors import CheckpointError, near

__all__ = ["Fitted", "Wanted", "fitted"]

Wanted: TypeAlias = "Iterable[str] | re.Pattern[str] | Callable[[str], bool] | None"

FEW = 8
"""More names of a kind are counted, not written out."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Part of a checkpoint that fits a model.

    Attributes
    ----------
    state : dict of str to Tensor
        By the model's names.
    absent, extra, shapes : str
        Entries that only the model has, that only the checkpoint has, and that differ in shape, as
        text; each empty if there is none.
    """

    state: dict[str, Tensor]
    absent: str
    extra: str
    shapes: str

    @property
    def differences(self) -> str:
        """All differences, as text; empty if there are none."""
        return "; ".join(filter(None, (self.absent, self.extra, self.shapes)))


def fitted(
    saved: Mapping[str, Tensor],
    own: Mapping[str, Any],
    to_restore: Wanted = None,
    renames: Mapping[str, str] | None = None,
) -> Fitted:
    """Compare saved entries with a model's own state.

    Parameters
    ----------
    saved, own : mapping of str to Tensor
    to_restore : names, compiled regex or callable, optional
        Entries of the checkpoint to load, by their saved names; a regex must match from the start.
    renames : dict of str to str, optional
        Saved name to the model's.

    Raises
    ------
    ValueError
        For a name that nobody knows.
    """
    wanted = _wanted(saved, to_restore)
    names = _renamed(wanted, saved, own, renames or {})
    extra = [new for new in names.values() if new not in own]
    # If some are wanted by name, others are left out on purpose.
    absent = [name for name in own if name not in names.values()] if to_restore is None else []
    shapes = {
        new: (_shape(saved[old]), _shape(own[new]))
        for old, new in names.items()
        if new in own and _shape(saved[old]) != _shape(own[new])
    }
    fits = {new: saved[old] for old, new in names.items() if new in own and new not in shapes}
    return Fitted(
        fits,
        _listed("missing there", absent),
        _listed("not in the model", extra),
        _listed("other shapes", [_words(*item) for item in shapes.items()]),
    )


def _wanted(saved: Mapping[str, Tensor], to_restore: Wanted) -> list[str]:
    if to_restore is None:
        return list(saved)
    if isinstance(to_restore, re.Pattern):
        found = [name for name in saved if to_restore.match(name)]
    elif callable(to_restore):
        found = [name for name in saved if to_restore(name)]
    else:
        found = [to_restore] if isinstance(to_restore, str) else list(to_restore)
        _check_known(found, saved, "to_restore", "the checkpoint")
    if not found:
        raise CheckpointError(f"to_restore={to_restore!r} means none of {_few(list(saved))}")
    return found


def _renamed(
    wanted: list[str], saved: Mapping[str, Tensor], own: Mapping[str, Any], new: Mapping[str, str]
) -> dict[str, str]:
    _check_known(new, saved, "renames", "the checkpoint")
    _check_known(new.values(), own, "renames", "the model")
    names = {old: new.get(old, old) for old in wanted}
    twice = [name for name, n in Counter(names.values()).items() if n > 1]
    if twice:
        raise ValueError(f"renames: {twice[0]!r} of the model would come from several entries")
    return names


def _check_known(names: Iterable[str], known: Mapping[str, Any], where: str, of: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: {name!r} is no entry of {of}; {near(name, known)}")


def _shape(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, Tensor) else None


def _words(name: str, shapes: tuple[tuple[int, ...] | None, tuple[int, ...] | None]) -> str:
    there, here = shapes
    return f"{name} {there} there, {here} here"


def _listed(what: str, names: list[str]) -> str:
    return f"{what}: {_few(names)}" if names else ""


def _few(names: list[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more
