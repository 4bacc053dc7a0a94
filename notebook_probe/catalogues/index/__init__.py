"""An index of rows in a database; it can be lost, and is made anew from the records.

::

    rows ─▶ one text of JSON each ─┐
          └▶ an entry per value ───┴─▶ SQLite or PostgreSQL ─▶ those that a condition lets through
"""

from notebook_probe.catalogues.index.database import open_database
from notebook_probe.catalogues.index.index import Index, Known

__all__ = ["Index", "Known", "open_database"]
