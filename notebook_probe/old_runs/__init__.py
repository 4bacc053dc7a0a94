"""Runs of other tools, read as past runs; their files are never changed.

::

    files ─▶ reader of a format ─▶ OldRun, a plain value ─┬─▶ record in memory, which open_run reads
                                                       ├─▶ record on disk, by nbp import
                                                       └─▶ row of the table of runs

Nothing here needs the packages that wrote the files, a network, or torch.
"""

from notebook_probe.old_runs.finding import find_old_run, old_runs_in
from notebook_probe.old_runs.importing import import_runs
from notebook_probe.old_runs.place import OldPlace
from notebook_probe.old_runs.run import OldRun, OldSeries

__all__ = ["OldPlace", "OldRun", "OldSeries", "find_old_run", "import_runs", "old_runs_in"]
