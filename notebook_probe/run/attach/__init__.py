"""What is measured where: requests, presets, default places, and the probes they come to.

Entered by a run and its gate, on the training thread between two steps.
"""
