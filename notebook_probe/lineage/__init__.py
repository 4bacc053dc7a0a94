"""Provenance of a training from its record: its data, settings, results and code.

::

    root attributes, events, the loss ─▶ one row of a run ─▶ a table of many

Nothing here needs torch; `notebook_probe.summary` writes what is read here.
"""
