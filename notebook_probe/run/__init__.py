"""The run: a watched model, its probes, its record and its controls.

A user enters by `watch` and `Run`, a panel by `Source` and the queue of `controls`, nobody else.
"""
