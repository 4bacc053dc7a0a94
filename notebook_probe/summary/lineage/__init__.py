"""Provenance of a run: written as JSON among the attributes of its record.

::

    training, evaluation, user, device ─▶ plain values ─▶ run.controls.keep_lineage(...)

Unknown values are None. `notebook_probe.lineage` reads it.
"""
