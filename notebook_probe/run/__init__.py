"""The run: a watched model, its probes, its record and its controls.

Users enter by `watch` and `Run`, panels by `Source` and the queue of `controls`, nothing else.
"""
