"""The panel without its kernel: its front end and thinned numbers, packed into one text.

A file to send, or the output of a notebook. The frames are those that the painters send to a live
panel; in the browser a small stand-in for the kernel answers from them.
"""
