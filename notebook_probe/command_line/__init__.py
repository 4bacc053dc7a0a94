"""Commands for a terminal, such as ``python -m notebook_probe runs --sort best.accuracy``.

::

    words ─▶ parser ─▶ a command ─▶ catalogue, records ─▶ text that fits the terminal, JSON or CSV

Each file has one command. An error is one line on stderr and exit code 2. Only ``demo``, which
trains, imports torch.
"""

from notebook_probe.command_line.main import main

__all__ = ["main"]
