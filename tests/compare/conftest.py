"""What the page's program needs."""

from tests.run.conftest import programs

__all__ = ["programs"]
