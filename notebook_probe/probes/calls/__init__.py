"""A module's calls: inputs, outputs, their gradients, attention, and what a forward collects.

Entered by the observer, which arms the taps of a step; hooks of the model end here.
"""
