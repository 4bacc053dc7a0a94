"""The rule that a quick test takes less than half a second, and what enforces it."""
