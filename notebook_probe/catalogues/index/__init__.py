"""An index of rows in a database; disposable, as it is rebuilt from the records.

::

    rows ─▶ one text of JSON each ─┐
          └▶ an entry per value ───┴─▶ SQLite or PostgreSQL ─▶ rows that meet a condition
"""

from notebook_probe.catalogues.index.database import open_database
from notebook_probe.catalogues.index.index import Index, Known

__all__ = ["Index", "Known", "open_database"]
