"""The Explorer: the live panel. The only place that imports ipywidgets, anywidget and IPython.

It accesses a run through `Source` and the queue of requests; a run opens it only on call. Code that
writes the panel into a file needs none of these packages, so each is imported when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from notebook_probe.explorer.explorer import Explorer
    from notebook_probe.explorer.one_file import to_html
    from notebook_probe.explorer.panel import Panel

__all__ = ["Explorer", "Panel", "to_html"]

_HOMES = {"Explorer": "explorer", "Panel": "panel", "to_html": "one_file"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("notebook_probe"):
            raise
        raise ModuleNotFoundError(
            f"the panel needs {error.name}, which is not installed: "
            'pip install "notebook-probe[lab]"',
            name=error.name,
        ) from error
