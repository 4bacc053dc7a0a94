"""Records that live elsewhere: on an object store, in any zarr Store, in an icechunk repository.

A run is always written into a folder of this machine, its *spool*, by the ordinary writer, so that
training never waits for a network and everything a record can do it can do here. A thread ships
what has changed (`shipper`), in an order in which every reader sees one commit of the writer
(`mirror`). A lease keeps a second writer away (`lease`).
"""

from notebook_probe.record.store.remote import schemes
from notebook_probe.record.store.remote.address import engine_of, place_of, store_schemes

__all__ = ["engine_of", "place_of", "schemes", "store_schemes"]
