"""The model run once more on a kept batch, without leaving a trace in it.

Entered by the observer as a due step opens, and by a run that is given a batch.
"""
