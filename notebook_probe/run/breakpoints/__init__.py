"""Breakpoints: conditions that pause training, and which of them were met.

`conditions` and `requests` are values that are imported without torch; `breakpoints` is the list
of a run, which receives rows, alerts and steps; `check` queries it between two steps.
"""
