"""Facts about single calls of the model: what it is given, and what it does with it.

a sampled step ─▶ its first call ─▶ numbers on their way to the host ─▶ judged on another thread
"""
