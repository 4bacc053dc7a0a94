"""Views of recorded images, sounds, texts and histograms, in every panel of this process."""

from __future__ import annotations

from pathlib import Path

from notebook_probe.explorer.draw.view import VIEWS, Draw, view
from notebook_probe.summary.views.audio import sounds
from notebook_probe.summary.views.histograms import histogram_table
from notebook_probe.summary.views.images import pictures
from notebook_probe.summary.views.texts import texts

__all__ = ["show_views"]

HERE = Path(__file__).parent
ALL: dict[str, tuple[Draw, str]] = {
    "images": (pictures, "images.js"),
    "audio": (sounds, "audio.js"),
    "texts": (texts, "texts.js"),
    "histograms": (histogram_table, "histograms.js"),
}


def show_views() -> None:
    """Show the views in panels from now on; called by a collector that starts.

    Examples
    --------
    >>> nbp.summary.show_views()  # doctest: +SKIP
    >>> nbp.open_run("summary/record.zarr").explore()  # doctest: +SKIP
    """
    for name, (draw, file) in ALL.items():
        if name not in VIEWS:  # one of the user's own stays
            # A view's ES module is one text, so that the shared part is put in front.
            parts = [(HERE / one).read_text("utf-8") for one in ("stepper.js", file)]
            view(name, esm="\n".join(parts))(draw)
