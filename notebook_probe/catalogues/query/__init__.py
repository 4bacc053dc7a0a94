"""Conditions on runs, from text, a dict or a function; evaluated on a row, and as SQL.

::

    text ─▶ tokens ─┐
    dict ───────────┼─▶ condition ─▶ matches(row)
    function ───────┘        └─────▶ sql(columns), never fewer rows than match

Nothing is evaluated as code, and nothing here imports SQLAlchemy: columns bring their operators.
"""

from notebook_probe.catalogues.query.condition import Condition, IndexTables, Row, Sql
from notebook_probe.catalogues.query.fields import field_named
from notebook_probe.catalogues.query.flattened import Laid, entries, field_key, laid
from notebook_probe.catalogues.query.where import Where, condition

__all__ = [
    "Condition",
    "IndexTables",
    "Laid",
    "Row",
    "Sql",
    "Where",
    "condition",
    "entries",
    "field_key",
    "field_named",
    "laid",
]
