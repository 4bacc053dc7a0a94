"""Every run that was recorded, found again: on this machine, of a lab, in an object store.

::

    records ─▶ a row of each, read off its JSON ─▶ an index in a database ─▶ queries ─▶ a table

The truth is what the records say; the index can be lost and is built anew. Nothing here needs
torch, and SQLAlchemy only where a catalogue is opened.
"""

from notebook_probe.catalogues.held import Catalogue
from notebook_probe.catalogues.opening import catalogue, runs
from notebook_probe.catalogues.refreshing import Refreshed
from notebook_probe.catalogues.runs import Runs

__all__ = ["Catalogue", "Refreshed", "Runs", "catalogue", "runs"]
