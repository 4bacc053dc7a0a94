"""Probes: reading tensors out of a model while it trains, without changing a bit of it."""
