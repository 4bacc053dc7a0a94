"""Commands as tools."""
