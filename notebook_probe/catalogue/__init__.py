"""Every run that was recorded, found again: on this machine, of a lab, in an object store.

::

    records ─▶ a row of each, read off its JSON ─▶ an index in a database ─▶ queries ─▶ a table

The truth is what the records say; the index can be lost and is built anew. Nothing here needs
torch.
"""
