"""Trainings from parameters: dicts are checked, built, trained by a loop, saved and found again.

::

    dicts ─▶ params ─▶ build ─▶ restoring ─▶ units of the loop: train, validate, save ─▶ records
"""
