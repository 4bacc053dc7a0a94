"""The Explorer: the live panel. The only place that imports ipywidgets, anywidget and IPython.

It reaches a run through `Source` and the queue of requests; a run opens it on call alone.
"""

from __future__ import annotations

try:
    from notebook_probe.explorer.explorer import Explorer
    from notebook_probe.explorer.panel import Panel
except ModuleNotFoundError as error:
    if error.name is None or error.name.startswith("notebook_probe"):
        raise
    raise ModuleNotFoundError(
        f'the panel needs {error.name}, which is not installed: pip install "notebook-probe[lab]"',
        name=error.name,
    ) from error

__all__ = ["Explorer", "Panel"]
