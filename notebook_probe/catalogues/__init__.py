"""Catalogue of recorded runs: on this machine, of a lab, in an object store.

::

    records ─▶ a row of each, read off its JSON ─▶ an index in a database ─▶ queries ─▶ a table

The records are the truth; the index can be lost and is rebuilt. Nothing here needs torch, and
SQLAlchemy only where a catalogue is opened.
"""

from notebook_probe.catalogues.opening import catalogue, runs
from notebook_probe.catalogues.refreshing import IndexChanges
from notebook_probe.catalogues.run_catalogue import Catalogue
from notebook_probe.catalogues.runs import Runs

__all__ = ["Catalogue", "IndexChanges", "Runs", "catalogue", "runs"]
