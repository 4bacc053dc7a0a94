"""Training loops that record themselves: trainer, loop, checkpoints, collector."""
