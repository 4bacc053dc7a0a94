"""Configuration of a trainer as values of a record: short, plain, and without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from notebook_probe.old_runs.notes import fitting, plain

__all__ = ["recordable"]

MOST_ENTRIES = 300
"""Larger collections, such as the names of a thousand classes, are recorded as their size.

The settings of axolotl are a collection of 110.
"""
LONGEST_OBJECT = 200
"""Characters of an object that is no value of JSON, such as a whole model."""
SECRET_NAME = re.compile(
    r"(^|[_.-])(token|secret|password|passwd|credentials?|auth|(api|access|private|secret)_?key)$",
    re.IGNORECASE,
)
SECRET_TEXT = re.compile(r"(?<=://)[^/@\s]+(?=@)|\b(hf_|sk-|gh[pos]_)\w{16,}")
"""User and password in a URL, and tokens of services that are known by their first letters."""
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def recordable(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without secrets, and without entries that are None.

    Text is left out under a name such as ``hub_token`` or ``api_key``, and so are users and
    passwords in URLs. Values that JSON does not have become text.

    Examples
    --------
    >>> recordable({"lr": 0.1, "hub_token": "x", "model": {"pad_token_id": 0}, "seed": None})
    {'lr': 0.1, 'model': {'pad_token_id': 0}}
    """
    return fitting(plain(_entries(config)))


def _entries(config: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(name): _shown(value)
        for name, value in config.items()
        if value is not None and not _is_secret(str(name), value)
    }


def _is_secret(name: str, value: Any) -> bool:
    # A number is none: models have a pad_token_id, and tokenizers an n_token.
    return not isinstance(value, bool | int | float) and SECRET_NAME.search(name) is not None


def _shown(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | Set | list | tuple) and len(value) > MOST_ENTRIES:
        return f"{len(value)} entries"
    if isinstance(value, Mapping):
        return _entries(value)
    if isinstance(value, Set):  # in one order in every process
        return [_shown(one) for one in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [_shown(one) for one in value]
    text = value if isinstance(value, str) else ADDRESS.sub("", str(value)[:LONGEST_OBJECT])
    return SECRET_TEXT.sub("...", text)
