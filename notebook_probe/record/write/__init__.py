"""Writing a record: rows become chunks, published by replacing the root metadata.

Also continues an existing record. A run uses `writer` and its streams.
"""
