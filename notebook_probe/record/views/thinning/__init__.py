"""Fewer points than were recorded, for a picture: as many as it has pixels for, extremes kept.

Lines are thinned from memory (`column`) or from a stream and its pyramid (`zoom`), and both end in
`minmax`; a heat map is reduced to blocks of steps (`blocks`, `heat_grid`). Values computed from
every step come earlier: an `average` follows the rows themselves (`averages`), and is then a series
like any other, with its own extremes.
"""
