"""Writing a record: rows to chunks, one root after the other, and going on with it later.

Entered by a run, through `writer` and its streams.
"""
