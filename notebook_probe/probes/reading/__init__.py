"""What is read in a step, worked out once for each set of due probes, and the values made of it.

Entered by every room that reads a tensor; it knows the step, and no module's hooks.
"""
