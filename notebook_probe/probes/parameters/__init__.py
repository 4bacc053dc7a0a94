"""Weights, gradients, updates and options, read round an optimizer's step.

Entered by the observer and by `around_optimizer`, which hears of the steps.
"""
