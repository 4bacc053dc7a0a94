"""The file of saved views: one for all records of a folder, read and written as a whole."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from notebook_probe.errors import ProbeError, UnknownNameError, near
from notebook_probe.explorer.saved_views.view_settings import ViewSettings
from notebook_probe.record.format.source import Source

__all__ = ["FILE_NAME", "ViewFile"]

FILE_NAME = "panel_views.json"
VERSION = 1


class ViewFile:
    """Saved views of all records in one folder; those of remote records are in the working folder.

    Parameters
    ----------
    folder : path
    record : str
        Name of the record, for the view that it showed last.

    Examples
    --------
    >>> import tempfile
    >>> views = ViewFile(Path(tempfile.mkdtemp()), "first.zarr")
    >>> views.save("attention", ViewSettings(home="grad_norm"))
    >>> views.names
    ['attention']
    """

    def __init__(self, folder: Path, record: str) -> None:
        self.path, self._record = folder / FILE_NAME, record

    @classmethod
    def of(cls, source: Source) -> ViewFile:
        """Return the file for a run or an opened record."""
        location = source.location
        if "://" in location or not location:
            return cls(Path.cwd(), location)
        record = Path(location)
        return cls(record.parent, record.name)

    @property
    def stamp(self) -> tuple[int, int] | None:
        """A value that changes when the file does; None without a file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    @property
    def names(self) -> list[str]:
        """Names of all views, in the order in which they were first saved."""
        return [*self._content()["views"]]

    @property
    def last(self) -> str:
        """Name of the view that this record showed last; empty if there is none."""
        content = self._content()
        name = str(content["last"].get(self._record, ""))
        return name if name in content["views"] else ""

    def view(self, name: str) -> ViewSettings:
        """Return a view.

        Raises
        ------
        UnknownNameError
            There is none of this name; the message lists close ones.
        """
        views = self._content()["views"]
        if name not in views:
            raise UnknownNameError(f"no view {name!r} in {self.path}; {near(name, views)}")
        return ViewSettings.from_json(views[name])

    def save(self, name: str, view: ViewSettings) -> None:
        """Keep a view under a name; an older one of this name is replaced."""
        content = self._content()
        content["views"][name] = view.to_json()
        content["last"][self._record] = name
        self._write(content)

    def remember(self, name: str) -> None:
        """Note that the record shows this view."""
        content = self._content()
        if name in content["views"] and content["last"].get(self._record) != name:
            content["last"][self._record] = name
            self._write(content)

    def remove(self, name: str) -> None:
        """Remove a view, if there is one of this name."""
        content = self._content()
        if content["views"].pop(name, None) is not None:
            content["last"] = {of: one for of, one in content["last"].items() if one != name}
            self._write(content)

    def _content(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            content = {}
        except (OSError, ValueError) as error:
            raise ProbeError(f"{self.path} cannot be read: {error}") from error
        return {
            "version": VERSION,
            "views": _dict(content, "views"),
            "last": _dict(content, "last"),
        }

    def _write(self, content: Mapping[str, Any]) -> None:
        """Replace the file at once, so that no reader sees half of it."""
        text = json.dumps(content, indent=2) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=self.path.parent, delete=False, encoding="utf-8", suffix=".json"
            ) as file:
                file.write(text)
            os.replace(file.name, self.path)  # noqa: PTH105  Path.replace parses both paths again
        except OSError as error:
            raise ProbeError(f"{self.path} cannot be written: {error}") from error


def _dict(content: Any, name: str) -> dict[str, Any]:
    found = content.get(name, {}) if isinstance(content, dict) else {}
    return found if isinstance(found, dict) else {}
