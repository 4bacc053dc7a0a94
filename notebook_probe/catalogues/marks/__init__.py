"""What is said of a run from outside: tags, a note, put aside; and what of runs is removed.

::

    tag, note, archive ─▶ the group marks/ of the record ─▶ a row of the catalogue
    condition ─▶ rows ─▶ clean_up: what would go, what stays and why ─▶ delete()

A record is marked while it is written: its writer knows nothing of it.
"""

from notebook_probe.catalogues.marks.clean_up import CleanUp, Deleted, clean_up
from notebook_probe.catalogues.marks.kept import change, read
from notebook_probe.catalogues.marks.marks import Marks

__all__ = ["CleanUp", "Deleted", "Marks", "change", "clean_up", "read"]
