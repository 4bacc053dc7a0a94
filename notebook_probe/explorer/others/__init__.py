"""Other runs beside the one of a panel: found, and read in a thread of their own.

::

    folder, path, URL ─▶ shelf: opened records, and a row of each ─▶ what of them is drawn
"""
