"""Messages about a run."""
