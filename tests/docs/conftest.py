"""Programs are begun once for all pages."""

from tests.run.conftest import programs

__all__ = ["programs"]
