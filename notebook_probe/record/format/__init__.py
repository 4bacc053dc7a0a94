"""Format of a record: names, arrays, axes, kinds and codecs, and what readers get.

The lowest room of the record, open to all; readers use `source`.
"""
