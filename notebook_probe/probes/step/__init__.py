"""One step: probes, the open frame, and what tells where a step begins and ends.

The lowest room of the probes, open to all of them and to a run.
"""
