"""What is set while it trains: options of the optimizers, and knobs of the user's own.

Entered by a run, to check, and by its gate, on the training thread between two steps.
"""
