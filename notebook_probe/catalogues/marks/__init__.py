"""Marks on a run from outside: tags, a note, archived; and the removal of runs.

::

    tag, note, archive ─▶ the group marks/ of the record ─▶ a row of the catalogue
    condition ─▶ rows ─▶ clean_up: runs to delete, runs to keep and why ─▶ delete()

A record can be marked while it is written: its writer does not notice.
"""

from notebook_probe.catalogues.marks.clean_up import CleanUp, Deleted, clean_up
from notebook_probe.catalogues.marks.mark_store import change, read
from notebook_probe.catalogues.marks.marks import Marks

__all__ = ["CleanUp", "Deleted", "Marks", "change", "clean_up", "read"]
