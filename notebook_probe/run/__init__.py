"""The run: a watched model, its probes, its record and its controls."""
