"""Base of objects that answer former and misspelled names with the right one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from notebook_probe.errors import near

__all__ = ["FormerNames"]


class FormerNames:
    """Base of objects that answer a missing name with the right one.

    Examples
    --------
    >>> class Door(FormerNames):
    ...     _owner, _former = "a door", {"let_in": "door.open()"}
    >>> Door().let_in
    Traceback (most recent call last):
        ...
    AttributeError: a door has no 'let_in': it is door.open()
    """

    _owner: ClassVar[str]
    """Owner of the name, in the error."""
    _former: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Names that notebooks or habits still use, and their replacements."""

    def _instead(self, name: str) -> str:
        """Return the replacement of a name; empty without one."""
        return self._former.get(name, "")

    if not TYPE_CHECKING:  # a type checker knows every name

        def __getattr__(self, name: str) -> Any:
            """Answer a name that is missing by the right one."""
            if name.startswith("_"):  # of an object that is not complete yet, or of a protocol
                raise AttributeError(name)
            if instead := self._instead(name):
                raise AttributeError(f"{self._owner} has no {name!r}: it is {instead}")
            known = [one for one in dir(type(self)) if not one.startswith("_")]
            raise AttributeError(
                f"{self._owner} has no {name!r}; {near(name, known)}", name=name, obj=self
            )
