"""How the rows of a stream become chunks on disk: the ring, the arrays, the pyramid.

The writer and its flusher enter; nothing here knows them.
"""
