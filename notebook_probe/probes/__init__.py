"""Probes: reading tensors out of a model while it trains, without changing a bit of it.

A run enters by `observer`; what it gets are closed steps. No room here knows a store.
"""
