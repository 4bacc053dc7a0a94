"""Files, code and pictures that a panel exports.

Used by the panel and its session; reads the source as any reader would.
"""
