"""The commands as tools of the Model Context Protocol: ``nbp mcp``.

::

    arguments of a tool ─▶ words of its command ─▶ the command, as in a terminal ─▶ its JSON

`arguments` reads a command's own parser, so that a tool has its options without a second list.
"""
