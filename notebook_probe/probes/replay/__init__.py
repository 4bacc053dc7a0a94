"""The model run once more on a kept batch, without leaving a trace in it."""
