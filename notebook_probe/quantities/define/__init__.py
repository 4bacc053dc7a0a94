"""What a quantity is and how a function or a class becomes one: name, docstring, cost, card.

Entered by whoever makes or asks for a quantity, a user's notebook first; knows ``reduce`` alone.
"""
