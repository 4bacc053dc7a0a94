"""How a run is doing: its state, its speed, and why a probe is silent.

Entered by a run, its alerts and its panel, from any thread; it changes nothing.
"""
