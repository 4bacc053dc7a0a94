"""The user's own lineage: a dict, merged over that of the environment."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any, TypeAlias

from notebook_probe.errors import RecordWarning
from notebook_probe.json_numbers import json_value

__all__ = ["HYPER_CONFIG", "MOST_CHARACTERS", "checked_custom", "custom_lineage"]

Custom: TypeAlias = dict[str, int | float | str]

HYPER_CONFIG = "NOTEBOOK_PROBE_HYPER_CONFIG"
"""Environment variable with a JSON object, by which a launcher of many runs tells them apart."""

MOST_CHARACTERS = 100_000
"""Maximum characters of the dict as text."""


def checked_custom(given: object) -> Custom:
    """Return the dict as stored; numbers that JSON lacks become ``"nan"``, ``"inf"``, ``"-inf"``.

    Raises
    ------
    TypeError
        For anything but None or a dict of str to int, float or str; a bool is none of these.

    Examples
    --------
    >>> checked_custom({"lr": 0.1, "name": "wide"}), checked_custom(None)
    ({'lr': 0.1, 'name': 'wide'}, {})
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"custom_lineage_data={given!r}"[:200] + "; None or a dict is expected")
    for key, value in given.items():
        if not isinstance(key, str):
            raise TypeError(f"custom_lineage_data has the key {key!r}; keys are text")
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError(
                f"custom_lineage_data[{key!r}]={value!r}"[:200] + "; int, float or str is expected"
            )
    return {key: _plain(value) for key, value in given.items()}


def custom_lineage(given: object, environment: Mapping[str, str] = os.environ) -> Custom:
    """Return the user's own dict, merged over the JSON object of ``NOTEBOOK_PROBE_HYPER_CONFIG``.

    Parameters
    ----------
    given : dict of str to int, float or str, optional
        Wins where both name a key.
    environment : mapping

    Raises
    ------
    TypeError
        See `checked_custom`.

    Warns
    -----
    RecordWarning
        For a variable that is longer than 100 000 characters or no such dict; it is left out.

    Examples
    --------
    >>> custom_lineage({"lr": 0.1}, {"NOTEBOOK_PROBE_HYPER_CONFIG": '{"lr": 1, "trial": 7}'})
    {'lr': 0.1, 'trial': 7}
    """
    own = checked_custom(given)
    return {**_of_environment(environment), **own}


def _of_environment(environment: Mapping[str, str]) -> Custom:
    text = environment.get(HYPER_CONFIG)
    if text is None:
        return {}
    if len(text) > MOST_CHARACTERS:
        return _left_out(f"has {len(text)} characters; at most {MOST_CHARACTERS} are read")
    try:
        found: Any = json.loads(text)
        if not isinstance(found, dict):
            raise TypeError("a JSON object is expected")
        return checked_custom(found)
    except (ValueError, TypeError, RecursionError) as error:
        return _left_out(f"is left out: {error}")


def _left_out(why: str) -> Custom:
    warnings.warn(f"{HYPER_CONFIG} {why}", RecordWarning, stacklevel=4)
    return {}


def _plain(value: float | str) -> int | float | str:
    if isinstance(value, str):
        return str(value)
    return json_value(value)
