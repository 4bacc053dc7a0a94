"""Training in units: the update, checks, validation and saving of each unit.

::

    for each model in turn:  update ─▶ loss checked ─▶ validated, if due ─▶ saved, if due
"""
