"""Due probes of a step, and what they need together.

Entered by the observer once per step; it asks the schedules, and plans by the rooms below.
"""
