"""Writing a record: rows to chunks, one root after the other, also in an existing record.

Entered by a run, through `writer` and its streams.
"""
