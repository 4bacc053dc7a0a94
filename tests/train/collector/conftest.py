"""The same runs as in the tests of the run, and the same accelerator."""

from tests.run.conftest import accelerator, model, watch

__all__ = ["accelerator", "model", "watch"]
