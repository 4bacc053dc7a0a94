"""Tests of trained models: found again, loaded, validated once, saved with the models.

::

    dicts ─▶ params ─▶ loaded: the newest match, its seed and cfg, a model ─▶ test ─▶ writing
"""

from notebook_probe.experiment.testing.entry import test, test_from_params

__all__ = ["test", "test_from_params"]
