"""Histograms over steps with varying ends: read, and converted to common bins."""
