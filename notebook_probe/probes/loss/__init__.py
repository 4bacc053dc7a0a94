"""Loss of a step in a loop that does not log it: the tensor that ``backward()`` is called on.

Where torch begins a pass, whether it has come to the model, and whether an update applied it.
"""
