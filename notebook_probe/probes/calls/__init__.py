"""A module's calls: inputs, outputs, their gradients, attention, and what a forward collects.

Used by the observer, which arms the taps of a step; the model's hooks call this code.
"""
