"""Branches: rows that were written over by going back, and one history made of what stands.

`branches` names the groups of streams, `history` joins their rows, `overlaid` leaves out what was
written over where it lay, `line` says which events belong to a history.
"""
