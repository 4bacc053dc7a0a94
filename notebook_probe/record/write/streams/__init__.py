"""Rows of a stream become chunks on disk: the ring, the arrays, the pyramid.

Used by the writer and its flusher; depends on neither.
"""
