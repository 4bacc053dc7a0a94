"""Checkpoints of a loop: their contents, locations and retention, and loading them."""
