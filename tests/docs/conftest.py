"""Programs are begun once for all pages, and so is the pretended accelerator."""

from tests.run.conftest import accelerator, programs

__all__ = ["accelerator", "programs"]
