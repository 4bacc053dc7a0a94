"""The Explorer: the live panel. The only place that imports ipywidgets, anywidget and IPython."""

from __future__ import annotations

from notebook_probe.record.format.source import Source
from notebook_probe.run.controls import Controls

try:
    from notebook_probe.explorer.explorer import Explorer
except ModuleNotFoundError as error:
    if error.name is None or error.name.startswith("notebook_probe"):
        raise
    raise ModuleNotFoundError(
        f'the panel needs {error.name}, which is not installed: pip install "notebook-probe[lab]"',
        name=error.name,
    ) from error

__all__ = ["Explorer", "explore"]


def explore(source: Source, controls: Controls | None = None) -> Explorer:
    """Show a panel on a source under this cell.

    Parameters
    ----------
    source : Source
        A run or an opened record.
    controls : Controls, optional
        The live run's side for requests; without it the panel only shows.

    Returns
    -------
    Explorer
        ``close()`` removes the panel; in a plain script there is none and one line says so.

    Raises
    ------
    ModuleNotFoundError
        Without the packages of the ``lab`` extra.

    Examples
    --------
    >>> explorer = explore(nbp.open_run("runs/first.zarr"))  # doctest: +SKIP
    """
    explorer = Explorer(source, controls)
    explorer.show()
    return explorer
