"""Format of a record: names, arrays, axes, kinds and codecs, and what readers get.

The lowest subpackage of `record`: all others import it; readers use `source`.
"""
