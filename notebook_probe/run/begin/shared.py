"""Opening a new run to other processes."""

from __future__ import annotations

import weakref

from notebook_probe.record.store.location import Location, local_path
from notebook_probe.record.write.writer import RecordWriter
from notebook_probe.run.remote_control.sharing import Sharing
from notebook_probe.run.run import Run

__all__ = ["share"]


def share(run: Run, writer: RecordWriter, location: Location) -> None:
    """Open a run to other processes until it is closed or dropped."""
    path = local_path(location)
    # Absolute, as the program may change its folder.
    sharing = Sharing(run.controls, writer, location if path is None else path.absolute())
    run.controls.each_end(sharing.close)
    run.controls.resume_by(f"nbp resume {writer.location} continues it, from another process")
    # At the program's exit too: finalizers run in reverse order, so this one before the record's.
    weakref.finalize(run, sharing.close)
