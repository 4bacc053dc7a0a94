"""The tests mirror the package; one folder each."""
