"""What passes between the kernel and the views of a panel: read, checked and made here.

Entered by everything in the explorer; it draws nothing and opens nothing.
"""
