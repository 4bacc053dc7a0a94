"""The catalogue of runs in a terminal: ``python -m notebook_probe runs --sort best.accuracy``.

::

    words ─▶ parser ─▶ a command ─▶ catalogue, records ─▶ text that fits the terminal, JSON or CSV

A command a file; what cannot be done is one line on stderr and exit code 2. No torch, but in
``demo``, which trains.
"""

from notebook_probe.command_line.main import main

__all__ = ["main"]
