"""What is read in a step, worked out once for each set of due probes, and the values made of it."""
