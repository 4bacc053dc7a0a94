"""Loss of a step in a loop that does not log it: the tensor that ``backward()`` is called on.

It finds where torch begins a backward pass, whether the pass has reached the model, and whether an
update applied it.
"""
