"""Locations of records: noted by their writers on this machine, or below a folder or a URL.

::

    notes in the user's own folder ─┐
    folders ────────────────────────┼─▶ places, each with a mark that changes with it
    buckets ────────────────────────┘
"""

from notebook_probe.catalogues.finding.notes import NotedPlaces
from notebook_probe.catalogues.finding.place import RecordLocation
from notebook_probe.catalogues.finding.roots import below

__all__ = ["NotedPlaces", "RecordLocation", "below"]
