"""Branches: rows that were replaced by going back, and one history of the valid ones.

`branches` names the groups of streams, `history` joins their rows, `overlaid` leaves out what was
written over where it lay, `line` says which events belong to a history.
"""
