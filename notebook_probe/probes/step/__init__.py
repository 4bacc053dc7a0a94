"""Step: probes, the open frame, and the events where a step begins and ends.

The lowest room of the probes, open to all of them and to a run.
"""
