"""The same runs as in the tests of the run."""

from tests.run.conftest import model, watch

__all__ = ["model", "watch"]
