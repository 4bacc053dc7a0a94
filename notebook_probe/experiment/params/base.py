"""Reading a dict: every key is known and every value of its kind, or one clear error."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from notebook_probe.errors import ParamError, UnknownNameError, near

__all__ = [
    "Frequency",
    "Given",
    "Name",
    "Names",
    "Whole",
    "WithRest",
    "check_flags",
    "copied",
    "read",
]

LONGEST = 100
"""Characters of a value in a message."""


class Given(BaseModel):
    """A dict of parameters that has been read.

    Attributes
    ----------
    deprecated, aliases : dict of str to str
        Names that are accepted for others, with a warning and without. If both a deprecated name
        and its replacement are given, the deprecated one counts.
    """

    # Strict, as pydantic would otherwise take True for 1 and "3" for 3.
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True
    )
    deprecated: ClassVar[Mapping[str, str]] = {}
    aliases: ClassVar[Mapping[str, str]] = {}

    def shown(self) -> dict[str, Any]:
        """Return the given values, with defaults, as a dict."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class WithRest(Given):
    """Parameters of which unknown keys are arguments of the function.

    Parameters
    ----------
    rest : dict
        Arguments of the function.
    """

    rest: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        own = {*cls.model_fields} - {"rest"}
        rest = {name: value for name, value in given.items() if name not in own}
        for name in rest:
            if not isinstance(name, str):
                raise ValueError(f"the key {name!r} is to be the name of an argument")
        return {**{name: given[name] for name in given if name in own}, "rest": rest}

    def shown(self) -> dict[str, Any]:
        own = super().shown()
        return {**own.pop("rest"), **own}


def _whole(value: Any) -> Any:
    # Strict validation refuses numpy's integers, which are no subclass of int.
    return int(value) if isinstance(value, np.integer) else value


def _folder(value: Any) -> Any:
    """Check that a name is a single folder: no way out of its place, no folders inside."""
    if isinstance(value, str) and (
        value in ("", ".", "..") or {*value} & {*"/\\:\0"} or value != value.strip()
    ):
        raise ValueError("names a folder: no '/', '\\', ':', and neither empty, '.' nor '..'")
    return value


def _names(value: Any) -> Any:
    return (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    )


Whole = Annotated[int, BeforeValidator(_whole)]
Frequency = Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(_whole)]
"""Interval in units; None is never."""
Name = Annotated[str, BeforeValidator(_folder)]
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""Name, or sequence of names."""
NamesOrNone = Annotated[tuple[str, ...] | None, BeforeValidator(_names)]

T = TypeVar("T", bound=Given)


def read(kind: type[T], given: Any, where: str) -> T:
    """Read a dict; it is copied, with the dicts and lists in it.

    Parameters
    ----------
    kind : type
    given : dict or None
        None is an empty one.
    where : str
        Name of the value in errors.

    Raises
    ------
    UnknownNameError
        A key that nobody knows.
    ParamError
        A key that is missing, or a value that cannot be.

    Examples
    --------
    >>> class Door(Given):
    ...     width: Whole = 90
    >>> read(Door, {"width": 80}, "door").width
    80
    >>> read(Door, {"widht": 80}, "door")
    Traceback (most recent call last):
    notebook_probe.errors.UnknownNameError: door: no key 'widht'; close: 'width'
    >>> read(Door, {"width": True}, "door")
    Traceback (most recent call last):
    notebook_probe.errors.ParamError: door['width']=True: should be a valid integer
    """
    if isinstance(given, kind):
        return given
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ParamError(f"{where}={_short(given)}: a dict is expected")
    named = _renamed(kind, copied(given), where)
    try:
        return kind.model_validate(named)
    except ValidationError as error:
        # The original error names internal model classes; all that helps is in the new text.
        raise _in_our_words(error, kind, where) from None


def check_flags(**flags: object) -> None:
    """Check that each of these is a bool.

    Raises
    ------
    ParamError
        One is not.

    Examples
    --------
    >>> check_flags(dont_run=True, skip_check=False)
    """
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ParamError(f"{name}={flag!r}; allowed: True, False")


def copied(value: Any) -> Any:
    """Copy nested dicts and lists, but not their items."""
    # Only plain containers: a copy of any other mapping as a dict would lose its class.
    if isinstance(value, Mapping) and type(value).__module__ == "builtins":
        return {key: copied(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copied(one) for one in value)
    return value


def _renamed(kind: type[Given], given: dict[str, Any], where: str) -> dict[str, Any]:
    for old, new in kind.aliases.items():
        if old in given:
            if new in given:
                raise ParamError(f"{where}: {old!r} and {new!r} are the same; give one of them")
            given[new] = given.pop(old)
    # Unlike an alias, a deprecated name given together with the new one wins.
    for old, new in kind.deprecated.items():
        if old in given:
            text = f"{where}: {old!r} is deprecated; it is {new!r} now"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            given[new] = given.pop(old)
    return given


def _in_our_words(error: ValidationError, kind: type[Given], where: str) -> Exception:
    """Return the first error, in the words of this package."""
    first = error.errors(include_url=False)[0]
    place, key = where, ""
    for key in map(str, first["loc"]):
        place, above = f"{place}[{key!r}]", place
    if first["type"] == "extra_forbidden":
        return UnknownNameError(f"{above}: no key {key!r}; {near(key, kind.model_fields)}")
    if first["type"] == "missing":
        return ParamError(f"{above}: {key!r} is missing")
    text = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    value = "" if not first["loc"] else f"={_short(first['input'])}"
    return ParamError(f"{place}{value}: {text}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
