"""Readings of weights, gradients, updates and options around an optimizer's step.

Used by the observer and by `around_optimizer`, which is called at the steps.
"""
