"""Definition of quantities from functions and classes: name, docstring, cost, card.

Used by code that makes or requests a quantity, such as a user's notebook; imports only ``reduce``.
"""
