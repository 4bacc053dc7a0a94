"""Parts of the watched model: modules, parameters and their paths; torch only.

All packages above may use it: quantities, probes, runs.
"""
