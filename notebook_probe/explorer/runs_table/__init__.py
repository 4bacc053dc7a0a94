"""A table of runs in the notebook: sorted by a click on a head, a run opened by a click on its row.

It reads plain JSON and opens runs by a function that it is given.
"""

from notebook_probe.explorer.runs_table.runs_table import RunsTable, runs_box

__all__ = ["RunsTable", "runs_box"]
