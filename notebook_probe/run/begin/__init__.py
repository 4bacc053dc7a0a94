"""Preparation of a run: the process, the record, and the earlier run that it replaces.

Only `watch` uses it.
"""
