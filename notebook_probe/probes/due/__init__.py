"""Which probes are due in a step, and what they need together."""
