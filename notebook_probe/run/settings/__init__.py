"""Settings that can be changed during training: options of optimizers, and users' knobs.

Used by a run, to check, and by its gate, on the training thread between two steps.
"""
