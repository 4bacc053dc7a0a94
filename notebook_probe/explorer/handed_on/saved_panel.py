"""The panel in a saved notebook: passed to its views, and stored as an output."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable

from IPython.core.getipython import get_ipython
from IPython.display import display, update_display

from notebook_probe.explorer.handed_on.package import Looked, Packer
from notebook_probe.explorer.handed_on.page import fragment, waiting
from notebook_probe.explorer.leaving import leaving, widget_lock
from notebook_probe.run.health.status import StatusHead

__all__ = ["SavedPanel"]

MOST_BYTES = 700_000
"""Maximum size of one package.

A notebook has two, in its metadata for front ends with widgets and in an output for the others, two
pictures, and the widget's own code where it was run without a front end: 2 MB together.
"""


class SavedPanel:
    """Saved copy of a panel: kept by the views, and as an output below the picture.

    The views get it with every picture, the output gets it when training rests, for readers of the
    notebook elsewhere. Both get it again in a cell, since a notebook runner keeps nothing else.

    Parameters
    ----------
    packer : Packer
    hand_over : callable
        Receives each package.
    """

    def __init__(self, packer: Packer, hand_over: Callable[[str], None]) -> None:
        self._packer, self._hand_over = packer, hand_over
        self._id = uuid.uuid4().hex
        self._placed = False
        self._key: object = None
        self._text = ""
        self._handed_over: object = None
        self._published: object = None
        # The thread of a cell and the one that draws pictures both pack.
        self._lock = threading.Lock()

    def pack_with(self, packer: Packer) -> None:
        """Use another packer from now on, in the same place."""
        with self._lock:
            self._packer, self._key = packer, None

    def place(self) -> None:
        """Make room for it here."""
        self._placed = get_ipython() is not None
        if self._placed:
            display({"text/plain": ""}, raw=True, display_id=self._id)
            self._published = None

    def wait(self, title: str) -> None:
        """Show, until there is a package, that the panel of a reloaded page has to wait."""
        if self._placed:
            bundle = {"text/html": waiting(title), "text/plain": ""}
            update_display(bundle, raw=True, display_id=self._id)

    def take(self, looked: Looked, head: StatusHead, widget: str) -> None:
        """Pack the selection and pass it on, unless this package exists already."""
        with self._lock:
            if not self._placed or not looked.selection.home:
                return
            key = (self._packer.source.revision, looked.selection, head.state)
            if key != self._key:
                self._text = self._packer.package(looked, head, "notebook", 0, MOST_BYTES).text
                self._key = key
            in_cell = threading.current_thread() is threading.main_thread()
            if self._handed_over not in ((key, in_cell), (key, True)):
                self._hand_over(self._text)
                self._handed_over = key, in_cell
            if head.state != "training" or in_cell:
                self._publish(key, in_cell, widget)

    def _publish(self, key: object, in_cell: bool, widget: str) -> None:
        if self._published not in ((key, in_cell), (key, True)):
            bundle = {"text/html": fragment(self._text, widget), "text/plain": ""}
            with widget_lock:
                if not leaving.is_set():
                    update_display(bundle, raw=True, display_id=self._id)
            self._published = key, in_cell
