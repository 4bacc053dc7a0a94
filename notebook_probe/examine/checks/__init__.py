"""Checks of a `Subject`; each gives one or more findings."""
