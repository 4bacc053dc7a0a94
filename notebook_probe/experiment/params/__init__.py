"""Dicts of parameters as frozen values: parsed at the boundary, and never changed.

::

    dicts, or lists of them ─▶ several.read_all ─▶ a Params for each model ─▶ plain values
"""
