"""Where training is held by a condition: what conditions there are, and what has met them.

`conditions` and `requests` are values that are imported without torch; `breakpoints` is the list
of a run, which sees rows, alerts and steps go by; `check` asks it between two steps.
"""
