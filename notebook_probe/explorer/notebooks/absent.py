"""Where no panel can be shown: whether that is an error, and what is said if it is none."""

from __future__ import annotations

import sys

__all__ = ["in_a_notebook", "say_no_notebook"]

KERNELS = {"ipykernel", "marimo"}


def in_a_notebook() -> bool:
    """Whether something that runs notebooks is loaded; asked where the panel's packages lack.

    In a script nobody could see a panel, so that one that cannot be made must not end a training.
    """
    return not KERNELS.isdisjoint(sys.modules)


def say_no_notebook(name: str) -> None:
    """One line in the place of a panel."""
    print(
        f"{name}: there is no notebook here to show a panel in; "
        '.to_html("run.html") writes it into a file'
    )
