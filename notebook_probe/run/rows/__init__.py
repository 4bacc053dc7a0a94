"""From a closed step to rows of the record, on the host.

Entered by the observer with closed steps, by readers with the open one.
"""
