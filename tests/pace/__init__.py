"""The rule that a quick test takes less than a tenth of a second, and what enforces it."""
