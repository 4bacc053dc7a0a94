"""Training in units: of each the update, the checks, validation, and what is saved.

::

    for each model in turn:  update ─▶ loss checked ─▶ validated, if due ─▶ saved, if due
"""
