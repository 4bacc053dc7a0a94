"""Health of a run: its state, its speed, and why a probe has no value.

Used by a run, its alerts and its panel, from any thread; changes nothing.
"""
