"""Due probes of a step, and what they need together.

Called by the observer once per step; evaluates the schedules, and plans with the subpackages below.
"""
