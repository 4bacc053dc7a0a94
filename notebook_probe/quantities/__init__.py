"""Quantities: pure functions of a module's tensors; one file per family."""
