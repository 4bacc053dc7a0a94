"""Facts of execution: statements about how a training is executed, which need no threshold.

Each fact is true or false, is checked when it can have changed, and names its cause, its place and
the line to change. Findings are collected on the training thread and reported by the writer's.
"""
