"""What can be taken away from a panel: files, code, and the picture a notebook keeps.

Entered by the panel and its session; it reads the source as any reader would.
"""
