"""Tests that draw in a real browser."""
