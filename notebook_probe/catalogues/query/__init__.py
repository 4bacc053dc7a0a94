"""Conditions on runs, from text, a dict or a function; evaluated on a row, and as SQL.

::

    text ─▶ tokens ─┐
    dict ───────────┼─▶ condition ─▶ matches(row)
    function ───────┘        └─────▶ sql(columns), never fewer rows than match

Nothing is evaluated as code, and nothing here imports SQLAlchemy: columns bring their operators.
"""

from notebook_probe.catalogues.query.condition import Condition, IndexTables, Row, Sql
from notebook_probe.catalogues.query.fields import field_named
from notebook_probe.catalogues.query.flattened import FlatValue, entries, field_key, flattened
from notebook_probe.catalogues.query.where import Where, condition

__all__ = [
    "Condition",
    "FlatValue",
    "IndexTables",
    "Row",
    "Sql",
    "Where",
    "condition",
    "entries",
    "field_key",
    "field_named",
    "flattened",
]
