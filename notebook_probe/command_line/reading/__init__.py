"""Verbs that read one run, recorded or being trained now by another process.

::

    words ─▶ an opened run ─▶ an answer: a dataclass ─▶ text, or JSON that holds all of it

An answer is a frozen dataclass: `nbp schema` derives its JSON schema from the annotations.
"""
