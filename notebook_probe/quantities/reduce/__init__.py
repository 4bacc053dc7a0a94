"""Reductions: values that are read from a tensor once and shared by several quantities.

Used by quantities and by the probes that read for them; it imports no quantity.
"""
