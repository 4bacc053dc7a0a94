"""The loop over steps and epochs, and who takes part in it."""
