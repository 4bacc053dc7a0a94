"""A table of runs in the notebook: sorted, filtered, a run opened by a click and others by a tick.

It is given plain JSON and the functions that open and read runs::

    a view asks ─▶ answers.py ─▶ filtering.py: rows that match a text
                              ─▶ reading.py: the row of a record, the line of its loss, its alerts
                              ─▶ following.py: new values of growing runs
                              ─▶ arriving.py: new runs, and changed cells
                             ─▶ grouping.py: runs grouped by a column, their mean line and spread
    last_arrangement.py: columns, order, filter and picture, for the next time
    open_rows.py: the rows, each at its place, and the message with some of them

Reading is done in separate threads; a view requests only visible rows.
"""

from notebook_probe.explorer.runs_table.box import runs_box
from notebook_probe.explorer.runs_table.last_arrangement import KeptTable
from notebook_probe.explorer.runs_table.runs_table import RunsTable
from notebook_probe.explorer.runs_table.table_source import TableSource

__all__ = ["KeptTable", "RunsTable", "TableSource", "runs_box"]
