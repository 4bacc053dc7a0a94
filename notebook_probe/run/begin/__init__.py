"""Preparation of a run: the process, the record, and the earlier run that gives way.

Only `watch` uses it.
"""
