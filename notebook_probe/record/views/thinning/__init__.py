"""Fewer points than were recorded, for a picture: as many as it has pixels for, extremes kept.

Lines are thinned out of memory (`column`) or out of a stream and its pyramid (`zoom`), and both end
in `minmax`; a heat map is reduced to blocks of steps (`blocks`, `heat_grid`). What is to be drawn
of every step's value is taken before: an `average` follows the rows themselves (`averages`), and
is then a series like any other, with extremes of its own.
"""
