"""Environments without a notebook: whether that is an error, and the message if not."""

from __future__ import annotations

import sys

__all__ = ["in_a_notebook", "say_no_notebook"]

KERNELS = {"ipykernel", "marimo"}


def in_a_notebook() -> bool:
    """Return whether a notebook kernel is loaded; used when the panel's packages are missing.

    A script cannot show a panel, and a panel that cannot be made must not end a training.
    """
    return not KERNELS.isdisjoint(sys.modules)


def say_no_notebook(name: str) -> None:
    """Print a line in place of the panel."""
    print(
        f"{name}: there is no notebook here to show a panel in; "
        '.to_html("run.html") writes it into a file'
    )
