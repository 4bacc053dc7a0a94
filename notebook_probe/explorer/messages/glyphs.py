"""Signs of vectors, by which a panel tells histograms from spectra and from heads."""

from __future__ import annotations

from notebook_probe.explorer.messages.vector_frames import Glyph
from notebook_probe.record.format.source import Source

__all__ = ["glyph_of", "vector_glyphs"]


def glyph_of(quantity: str, has_axis: bool) -> Glyph:
    """Bars for vectors with an axis and for channels, dashes for heads, else a curve.

    Examples
    --------
    >>> [glyph_of(name, False) for name in ("attn_head_entropy", "output_cov_eigs")]
    ['dashes', 'curve']
    """
    if has_axis or "channel" in quantity:
        return "bars"
    return "dashes" if "head" in quantity else "curve"


def vector_glyphs(source: Source) -> dict[str, Glyph]:
    """Return the glyphs of the recorded vectors."""
    shared = {one.name for view in source.vectors.values() for one in view.variables}
    every = (one.name for view in source.elements.values() for one in view.variables)
    return {name: glyph_of(name, name in shared) for name in every}
