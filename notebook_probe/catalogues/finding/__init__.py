"""Where records are: noted by their writers on this machine, or below a folder or a URL.

::

    notes in the user's own folder ─┐
    folders ────────────────────────┼─▶ places, each with what tells that it has changed
    buckets ────────────────────────┘
"""

from notebook_probe.catalogues.finding.notes import Notes
from notebook_probe.catalogues.finding.place import Place
from notebook_probe.catalogues.finding.roots import below

__all__ = ["Notes", "Place", "below"]
