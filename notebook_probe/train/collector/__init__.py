"""Exact series of a training's numbers, which a model or a loop names."""
