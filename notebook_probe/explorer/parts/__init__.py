"""What a panel can beyond looking and attaching: one capability a file, `part` what they share.

::

    source, run ─▶ state of a part ─▶ its message, when it has changed ─▶ js/parts/<name>.js
    js/parts/<name>.js ─▶ a click ─▶ its request ─▶ the run, between two steps ─▶ a ticket
"""
