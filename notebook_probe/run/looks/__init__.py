"""Looks: the tensors of one module at one step, stored in the record on request.

::

    request ─▶ probes of that step alone ─▶ arrays of the record ─▶ an event with the facts ─▶ Look
"""
