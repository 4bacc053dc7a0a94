"""The rule that a quick test takes less than a fifth of a second, and what enforces it."""
