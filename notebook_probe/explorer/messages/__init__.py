"""Messages between the kernel and the views of a panel: parsed, checked and made here.

Used by everything in the explorer; draws nothing and opens nothing.
"""
