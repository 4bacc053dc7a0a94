"""Reading records in a store, one or many.

Used by `opened`, and by a writer that continues a record.
"""
