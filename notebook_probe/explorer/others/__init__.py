"""Other runs compared with the panel's run: found, and read in a separate thread.

::

    folder, path, URL ─▶ shelf: opened records, and a row of each ─▶ lines and frames
"""
