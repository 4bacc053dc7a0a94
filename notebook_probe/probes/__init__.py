"""Probes: reading tensors out of a model while it trains, without changing a bit of it.

A run uses `observer`, which passes closed steps to it. No subpackage here imports a store.
"""
