"""Readings of a step, worked out once for each set of due probes, and their values.

Entered by every room that reads a tensor; it knows the step, and no module's hooks.
"""
