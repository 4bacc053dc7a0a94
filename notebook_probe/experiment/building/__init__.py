"""Building of a training: data, model, loss, optimizer, validations, a loop.

::

    Params ─▶ stream of batches ─▶ model ─▶ optimizer ─▶ trainer ─▶ Training, ready to run
"""
