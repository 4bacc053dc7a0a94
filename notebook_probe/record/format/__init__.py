"""What a record is: names, arrays, axes, kinds and codecs, and what a reader is given.

The lowest room of the record, open to all; `source` is what everybody else reads.
"""
