"""Reading records that lie in a store, one or many, written here or by anybody.

Entered by `opened` and by the writer that goes on with a record.
"""
