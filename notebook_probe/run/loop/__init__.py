"""What the training loop tells a run: its numbers, its batches, the batch to run once more.

Each hands it to the observer or to the rows of the record; none knows the run.
"""
