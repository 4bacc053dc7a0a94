"""Histograms over steps, each with ends of its own: read, and brought to bins that all have."""
