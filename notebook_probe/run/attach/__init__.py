"""Probes of a run: requests, presets and default places.

Used by a run and its gate, on the training thread between two steps.
"""
