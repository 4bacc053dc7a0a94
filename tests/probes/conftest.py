"""The same runs as in the tests of the run: a folder of their own, closed at the end."""

from tests.run.conftest import accelerator, model, programs, watch

__all__ = ["accelerator", "model", "programs", "watch"]
