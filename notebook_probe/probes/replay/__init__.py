"""The model run once more on a stored batch, without changing it.

Called by the observer when a due step opens, and by a run that is given a batch.
"""
