"""Where a record lies: folders, archives, remote stores; and who may write there.

Entered by readers and writers with a location; it knows bytes and names, no rows.
"""
