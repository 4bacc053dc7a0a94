"""Step: probes, the open frame, and the events where a step begins and ends.

The lowest subpackage of `probes`: the others and a run import it.
"""
