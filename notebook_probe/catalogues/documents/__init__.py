"""A record as one flat row of names with dots, read off its commit record in one go.

::

    zarr.json ─▶ attributes, summary ─▶ row: names with dots, plain values
"""

from notebook_probe.catalogues.documents.document import Document, rank_of, read_document

__all__ = ["Document", "rank_of", "read_document"]
