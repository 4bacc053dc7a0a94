"""Input of a training loop to a run: its numbers, its batches, the batch for replays.

Each goes to the observer or to the rows of the record; none depends on the run.
"""
