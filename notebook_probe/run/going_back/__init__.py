"""Requests to go back to a step; a loop that supports it does so."""
