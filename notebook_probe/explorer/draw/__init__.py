"""Frames of the panel's views: rows are read, thinned to pixels and sent.

Used by the panel's session only; depends on the messages and the record's views, not on runs.
"""
