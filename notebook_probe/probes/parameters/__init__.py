"""Readings of weights, gradients, updates and options around an optimizer's step.

Entered by the observer and by `around_optimizer`, which hears of the steps.
"""
