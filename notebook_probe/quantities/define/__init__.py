"""What a quantity is and how a function or a class becomes one: name, docstring, cost, card."""
