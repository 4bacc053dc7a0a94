"""A name for each member of an open set: quantities, features, views."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import metadata
from typing import Generic, TypeVar

from notebook_probe.errors import DuplicateNameError, RegistryWarning, UnknownNameError, near

__all__ = ["Registry"]

T = TypeVar("T")


def entry_points(group: str) -> metadata.EntryPoints:
    """Return the announcements of installed packages; read again after packages have changed.

    Reading takes a file of every package, at each run that starts.
    """
    return _entry_points(group, tuple((path, _changed_at(path)) for path in sys.path))


# Keyed by the folders' times: installing a package changes the time of site-packages.
@lru_cache(maxsize=16)
def _entry_points(group: str, places: tuple[tuple[str, int], ...]) -> metadata.EntryPoints:
    return metadata.entry_points(group=group)


def _changed_at(path: str) -> int:
    try:
        return os.stat(path or ".").st_mtime_ns  # noqa: PTH116  a Path takes as long as the rest
    except OSError:
        return 0


class Registry(Generic[T]):
    """Names to objects; a taken name raises, an unknown one raises with its near matches.

    Parameters
    ----------
    kind : str
        Name of the members in messages, e.g. ``"quantity"``.
    entry_point_group : str, optional
        Group under which other packages announce theirs; loaded at the first look-up that misses.
    same : callable, optional
        ``same(old, new)`` is true when ``new`` is the old member defined again (a cell that was
        run twice); it then replaces the old one, with its aliases, instead of raising.

    Examples
    --------
    >>> colours = Registry[int]("colour")
    >>> colours.add("red", 0xFF0000)
    >>> colours["red"]
    16711680
    """

    def __init__(
        self,
        kind: str,
        entry_point_group: str = "",
        same: Callable[[T, T], bool] = lambda old, new: old is new,
    ) -> None:
        self._kind = kind
        self._group = entry_point_group
        self._same = same
        self._members: dict[str, T] = {}
        self._aliases: dict[str, str] = {}
        self._instead: dict[str, str] = {}

    def instead(self, name: str, text: str) -> None:
        """Set the advice for a name that people try and that is no member."""
        self._instead[name] = text

    def add(self, name: str, member: T, aliases: Sequence[str] = ()) -> None:
        """Register ``member`` as ``name`` and under each alias."""
        hidden = self._aliases.get(name)
        if hidden is not None and not self._same(self._members[hidden], member):
            raise DuplicateNameError(f"{self._kind} {name!r} would hide the alias of {hidden!r}")
        old = self._members.get(name)
        if old is not None and not self._same(old, member):
            raise DuplicateNameError(
                f"{self._kind} {name!r} is already registered: {old!r}; give yours another name"
            )
        for alias in aliases:
            owner = self._members.get(self._aliases.get(alias, name))
            if alias in self._members or (owner is not None and not self._same(owner, member)):
                raise DuplicateNameError(f"{self._kind} alias {alias!r} of {name!r} is taken")
        self._members[name] = member
        others = {alias: of for alias, of in self._aliases.items() if name not in (alias, of)}
        self._aliases = others | dict.fromkeys(aliases, name)

    def __getitem__(self, name: str) -> T:
        found = self._find(name)
        if found is None:
            self.load()
            found = self._find(name)
        if found is None and name in self._instead:
            raise UnknownNameError(f"no {self._kind} {name!r}: {self._instead[name]}")
        if found is None:
            everything = [*self._members, *self._aliases]
            raise UnknownNameError(f"no {self._kind} {name!r}; {near(name, everything)}")
        return found

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def values(self) -> list[T]:
        return list(self._members.values())

    def items(self) -> list[tuple[str, T]]:
        return list(self._members.items())

    def _find(self, name: str) -> T | None:
        return self._members.get(self._aliases.get(name, name))

    def load(self) -> None:
        """Register what other packages announce, as a look-up that misses does.

        One that cannot be loaded is warned of, once, and left out.
        """
        for entry in entry_points(group=self._group) if self._group else ():
            if entry.name in self._members or entry.name in self._instead:
                continue
            try:
                self.add(entry.name, entry.load())
            except Exception as error:  # a third-party package; the other ones must load
                problem = f"{entry.value} could not be loaded: {type(error).__name__}: {error}"
                self.instead(entry.name, problem)
                warnings.warn(f"{self._kind} {entry.name!r} of {problem}", RegistryWarning, 2)
