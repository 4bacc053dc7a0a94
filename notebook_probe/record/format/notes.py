"""Words and numbers that a user keeps with a record: JSON texts among the root's attributes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = [
    "ALERT",
    "ANNOTATIONS",
    "BRANCH",
    "CHECKPOINT",
    "CONFIG",
    "EPOCH",
    "EXAMINATION",
    "LINEAGE",
    "MODEL_GRAPH",
    "MOST_LINEAGE_BYTES",
    "OUTPUT",
    "OWN_KINDS",
    "REFERENCE",
    "SAMPLES",
    "TRAINED",
    "TRUNCATE",
    "UNIT",
    "flattened",
    "read_notes",
    "written_notes",
]

CONFIG, ANNOTATIONS, LINEAGE = "config", "annotations", "lineage"
"""Attributes of the root."""

TRAINED = "trained"
"""Attribute of the root: parameter groups, and which modules are in them."""

BRANCH, TRUNCATE = "branch", "truncate"
"""Kinds of events after which a record does not continue at its end."""

ALERT = "alert"
"""Kind of the events with a rule's findings."""

OUTPUT = "output"
"""Kind of the events with lines that the program printed."""

CHECKPOINT = "checkpoint"
"""Kind of the event of a state that was saved; its step is the number of updates completed."""

UNIT = "unit"
"""Kind of the event of a unit of an experiment; its step, too, is the number of updates."""

EPOCH, SAMPLES = "epoch", "samples"
"""Kinds of events of the training data: a pass begins, a step takes another number of samples."""

REFERENCE = "reference"
"""Kind of the event that names the runs with which this one is compared while it trains."""

MODEL_GRAPH = "model_graph"
"""Kind of the event that keeps the graph of the network."""

EXAMINATION = "examination"
"""Kind of the event that keeps the report of an examination of the model."""

WHOLE = "whole"
"""Kind of the event of steps that are measured whole because something has happened."""

OWN_KINDS = frozenset(
    {
        ALERT,
        "attach",
        BRANCH,
        "breakpoint",
        "budget",
        CHECKPOINT,
        "code",
        "config",
        "detach",
        "error",
        EXAMINATION,
        "flight",
        "full",
        MODEL_GRAPH,
        OUTPUT,
        "pause",
        "resume",
        "set",
        "spool",
        TRUNCATE,
        WHOLE,
    }
)
"""Kinds of events that are noted by the package, and understood by it."""

MOST_BYTES = 100_000
"""Maximum size: the root is read whole, and written again at each flush."""

MOST_LINEAGE_BYTES = 4 * MOST_BYTES
"""Maximum size of the lineage; the user's part of it may take 100 000 characters."""


DEEPEST = 32
"""Dicts in each other that are flattened."""
MOST_READ = 2 * MOST_LINEAGE_BYTES
"""Longer texts were written by no version of the package, and are not believed."""


def read_notes(attrs: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the root's attribute ``name``; empty if it is missing, damaged or too long.

    Examples
    --------
    >>> read_notes({"config": '{"lr": 0.1}'}, "config"), read_notes({}, "config")
    ({'lr': 0.1}, {})
    """
    text = attrs.get(name, "{}")
    if isinstance(text, str) and len(text) > MOST_READ:
        return {}
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def flattened(
    notes: Mapping[str, Any], above: str = "", deepest: int = DEEPEST
) -> Iterator[tuple[str, Any]]:
    """Yield the entries of nested dicts with dotted names; an empty dict is a value.

    A dict nested deeper than ``deepest`` is a value too.

    Examples
    --------
    >>> dict(flattened({"lr": 0.1, "model": {"depth": 3, "sizes": [4, 8]}}))
    {'lr': 0.1, 'model.depth': 3, 'model.sizes': [4, 8]}
    """
    for key, value in notes.items():
        if isinstance(value, Mapping) and value and deepest:
            yield from flattened(value, f"{above}{key}.", deepest - 1)
        else:
            yield f"{above}{key}", value


def written_notes(name: str, notes: Mapping[str, Any], most: int = MOST_BYTES) -> str:
    """Return notes as JSON; numpy's numbers become numbers and tuples lists.

    Raises
    ------
    ValueError
        A value that JSON lacks, with its place; or too much text.

    Examples
    --------
    >>> written_notes("config", {"lr": 0.1, "sizes": (3, 4)})
    '{"lr": 0.1, "sizes": [3, 4]}'
    """
    if not isinstance(notes, Mapping):
        raise ValueError(f"{name}={notes!r}"[:200] + "; a dict is expected")
    # Not escaped: an escaped character takes six bytes of the limit.
    text = json.dumps(_plain(name, notes), ensure_ascii=False)
    if len(text.encode()) > most:
        raise ValueError(f"{name} of {len(text.encode())} bytes; at most {most} are kept")
    return text


def _plain(place: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{place} has the key {key!r}; keys are text")
        return {key: _plain(f"{place}[{key!r}]", one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{place}[{i}]", one) for i, one in enumerate(value)]
    if not isinstance(value, str) and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()  # of numpy, and tensors of one element
    if value is None or isinstance(value, str | bool | int):
        return value
    # x - x is 0 for finite numbers only; JSON has neither NaN nor infinity.
    if isinstance(value, float) and value - value == 0:
        return value
    raise ValueError(
        f"{place}={value!r}"[:200] + "; text, finite numbers, bools, None, lists and dicts of these"
    )
