"""Definition of quantities from functions and classes: name, docstring, cost, card.

Entered by code that makes or requests a quantity, a user's notebook first; knows ``reduce`` alone.
"""
