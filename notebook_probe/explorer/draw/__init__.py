"""What a view shows of a source: rows read, thinned to the pixels, and sent.

Entered by the panel's session alone; it knows messages and the record's views, no run.
"""
