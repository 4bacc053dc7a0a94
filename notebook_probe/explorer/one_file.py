"""A panel as one HTML file: it needs no widget, no notebook, and matplotlib only for a picture."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from notebook_probe.checks import file_ending
from notebook_probe.errors import RecordFormatError
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.handed_on.package import Looked, Packer
from notebook_probe.explorer.handed_on.page import page
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.save.export import picture
from notebook_probe.explorer.saved_views import ViewFile
from notebook_probe.record.store.destination import new_file
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import StatusHead

__all__ = ["looking_at", "to_html", "write"]

ENDINGS = (".html", ".htm")


def to_html(
    source: RunSource, controls: Controls | None, path: str | os.PathLike[str], view: str = ""
) -> Path:
    """Write what a panel shows that was just opened, or a saved view."""
    session = PanelSession(source, controls)
    try:
        looked = looking_at(Looked(session.look(), session.homes), source, view)
        return write(Packer(source, controls), looked, session.head(), path)
    finally:
        session.close()


def looking_at(looked: Looked, source: RunSource, view: str) -> Looked:
    """Return what is looked at with a saved view; unchanged without a name of one."""
    if not view:
        return looked
    shown = ViewFile.of(source).view(view).applied(looked.selection, source)
    return replace(looked, selection=shown, homes=[*looked.homes, shown.home])


def write(packer: Packer, looked: Looked, head: StatusHead, path: str | os.PathLike[str]) -> Path:
    """Write the panel as one file; the still picture needs matplotlib, and is optional.

    Raises `ValueError` for a file name with another ending.
    """
    file_ending("path", path, ENDINGS)
    drawn = looked.selection.home and find_spec("matplotlib") is not None
    png = _picture(packer.source, looked.selection) if drawn else b""
    made = packer.package(looked, head, "file", beside=len(png) * 4 // 3)
    text = page(made.text, packer.source.name, png)
    with new_file(path, overwrite=True) as file:  # a name may have surrogates
        file.write_text(text, encoding="utf-8", errors="backslashreplace")
    return Path(path).expanduser()


def _picture(source: RunSource, selection: PanelSelection) -> bytes:
    """Return the still picture; without the lines, or empty, if the record is damaged there."""
    for shown in (selection, replace(selection, series=())):
        with suppress(RecordFormatError):
            return picture("png", source, shown)
    return b""
