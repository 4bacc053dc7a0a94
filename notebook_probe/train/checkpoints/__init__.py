"""Checkpoints of a loop: what is in one, where they lie, which are kept, and loading them."""
