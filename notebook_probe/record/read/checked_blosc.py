"""zarr's codec blosc, which asks what a frame says of its size before it makes room for it."""

from __future__ import annotations

from math import prod
from typing import Any, Self

from zarr.codecs import BloscCodec

from notebook_probe.record.format.codec import check_size
from notebook_probe.record.store.plain_files import MOST_BYTES

__all__ = ["CheckedBlosc"]


class CheckedBlosc(BloscCodec):
    """A `BloscCodec` for frames from untrusted sources."""

    @classmethod
    def of(cls, codec: BloscCodec) -> Self:
        """Return a checked codec with the settings of another one."""
        names = ("typesize", "cname", "clevel", "shuffle", "blocksize")
        return cls(**{name: getattr(codec, name) for name in names})

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        self._check(chunk_bytes, chunk_spec)
        return super()._decode_sync(chunk_bytes, chunk_spec)

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        self._check(chunk_bytes, chunk_spec)
        return await super()._decode_single(chunk_bytes, chunk_spec)

    def _check(self, chunk_bytes: Any, chunk_spec: Any) -> None:
        itemsize = getattr(chunk_spec.dtype, "item_size", None)  # text has none
        most = MOST_BYTES if itemsize is None else itemsize * prod(chunk_spec.shape)
        check_size(chunk_bytes.as_numpy_array().data, min(most, MOST_BYTES))
