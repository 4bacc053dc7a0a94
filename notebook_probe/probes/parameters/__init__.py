"""Weights, gradients, updates and options, read round an optimizer's step."""
