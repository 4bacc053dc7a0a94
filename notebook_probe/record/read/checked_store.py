"""A store that verifies the checksums of chunks as they are read."""

from __future__ import annotations

import numpy as np
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import WrapperStore

from notebook_probe.record.format.codec import check_sum

__all__ = ["CheckedStore"]


class CheckedStore(WrapperStore):  # type: ignore[type-arg]
    """Store of a record; a damaged chunk raises ValueError."""

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        found = await super().get(key, prototype, byte_range)
        if found is not None and byte_range is None and "/c/" in key:
            check_sum(np.asarray(found.as_numpy_array(), np.uint8))
        return found
