"""The rule that a quick test takes less than a quarter of a second, and what enforces it."""
