"""The watched model's own parts: modules, parameters and their paths; torch only.

Anyone above may ask it: quantities, probes, runs.
"""
