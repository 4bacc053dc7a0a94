"""The run: a watched model, its probes, its record and its controls.

Users call `watch` and `Run`; panels use only `Source` and the queue of `controls`.
"""
