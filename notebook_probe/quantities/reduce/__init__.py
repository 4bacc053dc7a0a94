"""Reductions: values that are read from a tensor once and shared by several quantities.

Entered by quantities and by the probes that read for them; it knows no quantity.
"""
