"""Further capabilities of a panel: one per file; `part` is what they share.

::

    source, run ─▶ state of a part ─▶ its message, when it has changed ─▶ js/parts/<name>.js
    js/parts/<name>.js ─▶ a click ─▶ its request ─▶ the run, between two steps ─▶ a ticket
"""
