"""Rows of the record from a closed step, on the host.

Used by the observer with closed steps, by readers with the open one.
"""
