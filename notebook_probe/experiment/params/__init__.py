"""Dicts of parameters as frozen values: read at the door, and never changed.

::

    dicts, or lists of them ─▶ several.read_all ─▶ a Params for each model ─▶ plain values
"""
