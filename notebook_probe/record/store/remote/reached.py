"""Errors of a store's library as one error of ours, which says that the store does not answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import ObjectStore

from notebook_probe.errors import LONGEST, ProbeError, StoreSilentError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Objects

__all__ = ["ReachedStore", "failure", "reaching"]


class ReachedStore(ObjectStore):  # type: ignore[type-arg]
    """Objects of a store, to be read: an error of obstore is a `StoreSilentError`.

    Errors of obstore are no OSErrors, and would be taken for damage of the record.

    Parameters
    ----------
    store : obstore store
    name : str
        Name of the store, for messages.
    """

    def __init__(self, store: Objects, name: str, *, read_only: bool = True) -> None:
        super().__init__(store, read_only=read_only)
        self._name = name

    def with_read_only(self, read_only: bool = False) -> Self:
        return type(self)(self.store, self._name, read_only=read_only)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        with reaching(self._name):
            return await super().get(key, prototype, byte_range)

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        with reaching(self._name):
            return await super().get_partial_values(prototype, key_ranges)

    async def list_prefix(self, prefix: str) -> AsyncGenerator[str, None]:
        with reaching(self._name):
            async for key in super().list_prefix(prefix):
                yield key


@contextmanager
def reaching(name: str) -> Iterator[None]:
    """Turn any error of a library into a StoreSilentError that names the store.

    Raises
    ------
    StoreSilentError
    """
    try:
        yield
    except (ProbeError, FileNotFoundError):
        raise
    except Exception as error:  # whatever the library of a store raises
        raise StoreSilentError(f"cannot reach {name}: {reason_of(error)}") from error


def failure(error: BaseException) -> str:
    """Return the kind of an error and its reason, of several errors that of the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {reason_of(error)}"


def reason_of(error: BaseException) -> str:
    r"""Return why a request failed, without its address and the attempts that were made.

    Examples
    --------
    >>> text = "Generic S3 error: Error performing GET http://x/y in 3s - HTTP error: sending"
    >>> reason_of(OSError(text + "\n\nDebug source: ..."))
    'HTTP error: sending'
    """
    first, _, _ = f"{error}".partition("\n")
    return first.rpartition(" - ")[2][:LONGEST] or "no reason given"
