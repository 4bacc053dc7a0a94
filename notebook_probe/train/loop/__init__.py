"""Training loop over steps and epochs, with its hooks and its recording."""
