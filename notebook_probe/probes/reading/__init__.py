"""Readings of a step, worked out once for each set of due probes, and their values.

Used by every subpackage that reads a tensor; imports the step, and no module's hooks.
"""
