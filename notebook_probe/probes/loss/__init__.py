"""The loss of a step, of a loop that tells nobody: the tensor that ``backward()`` is called on.

Where torch begins a pass, whether it has come to the model, and whether an update applied it.
"""
