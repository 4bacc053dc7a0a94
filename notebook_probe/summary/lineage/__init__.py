"""Of what a run came, and what came of it: written as JSON among the attributes of its record.

::

    training, evaluation, what the user says, device ─▶ plain values ─▶ run.keep_lineage(...)

What is not known of it is None. `notebook_probe.lineage` reads it.
"""
