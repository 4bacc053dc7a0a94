"""Batches without end, which any number of models may be trained on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from notebook_probe.errors import ParamError
from notebook_probe.train.data.dataset import Dataset

__all__ = ["Reader", "Stream"]

Item = Mapping[str, Any]


class _DrawnBatch(NamedTuple):
    """A batch, and where the data was before it."""

    item: Item
    before: Mapping[str, Any]


class Stream:
    """Repeated passes over the data; every reader gets every batch.

    Batches that all readers have read are dropped.

    Parameters
    ----------
    source : iterable of dicts
        Restarted where it ends.

    Examples
    --------
    >>> stream = Stream([{"x": 1}, {"x": 2}])
    >>> one, other = stream.reader(), stream.reader()
    >>> [next(one)["x"] for _ in range(3)], next(other)["x"]
    ([1, 2, 1], 1)
    """

    def __init__(self, source: Iterable[Any]) -> None:
        self._data = Dataset(source)
        self._waiting: deque[_DrawnBatch] = deque()
        self._n_drawn = 0
        self._readers: list[Reader] = []

    @property
    def samples_per_batch(self) -> float | None:
        """Average over a pass; None if the source does not say."""
        return self._data.samples_per_batch

    def reader(self) -> Reader:
        """Return one more reader, from the beginning."""
        self._readers.append(Reader(self))
        return self._readers[-1]

    def first(self) -> Item:
        """Return the first batch, which remains to be read."""
        return self.at(0)

    def at(self, number: int) -> Item:
        """Return the batch with this number, counted from the very first."""
        while number >= self._n_drawn:
            self._waiting.append(self._draw())
            self._n_drawn += 1
        # Negative: batches wait in the order drawn, so that the newest is at -1.
        return self._waiting[number - self._n_drawn].item

    def forget(self) -> None:
        """Keep only batches that some reader has not read yet."""
        least = min((one.number for one in self._readers if not one.closed), default=self._n_drawn)
        while self._waiting and self._n_drawn - len(self._waiting) < least:
            self._waiting.popleft()

    def state(self, number: int) -> dict[str, Any]:
        """Return the state of the data before the batch of this number."""
        behind = self._n_drawn - number
        # A batch that waits was drawn already: its own position is the one from before the draw.
        data = self._waiting[-behind].before if behind > 0 else self._data.state_dict()
        return {"number": number, "data": dict(data)}

    def go_on(self, reader: Reader, state: Mapping[str, Any]) -> None:
        """Stand where a reader was; the others read on from there, if they were not further."""
        # A reader that has read nothing has no position to return to.
        for other in self._readers:
            if other.has_read:
                other.begun_at = self.state(other.number)
        reader.begun_at = state
        known = [one.begun_at for one in self._readers if one.begun_at is not None]
        first = min(known, key=lambda place: place["number"])
        self._data.load_state_dict(first["data"])
        self._waiting.clear()
        self._n_drawn = first["number"]
        for one in self._readers:
            one.number = (one.begun_at or first)["number"]

    def _draw(self) -> _DrawnBatch:
        # A single reader is never behind but of the very first.
        may_wait = len(self._readers) > 1 or not self._n_drawn
        before = self._data.state_dict() if may_wait else {}
        batch = next(self._data, None)
        # A pass with batches has ended; without this check, empty data would be reset forever.
        if batch is None and self._data.position:
            self._data.reset()
            batch = next(self._data, None)
        if batch is None:
            raise ParamError("train_params['data_params']: the data is empty")
        if not batch.keywords:
            raise ParamError(
                "train_params['data_params']: a batch is expected to be a dict, such as "
                "{'images': ..., 'labels': ...}"
            )
        return _DrawnBatch(batch.keywords, before)


class Reader:
    """Reader of a stream, with its own place in it.

    Parameters
    ----------
    stream : Stream
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.name = "train"
        self.number = 0
        self.closed = False
        self.has_read = False
        self.begun_at: Mapping[str, Any] | None = None

    @property
    def samples_per_batch(self) -> float | None:
        """Average over a pass."""
        return self._stream.samples_per_batch

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        item = self._stream.at(self.number)
        self.has_read = True
        self.number += 1
        self._stream.forget()
        return item

    def close(self) -> None:
        """Read no more; nothing is kept for it."""
        self.closed = True
        self._stream.forget()

    def state_dict(self) -> dict[str, Any]:
        """Return the position."""
        return self._stream.state(self.number)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`."""
        self._stream.go_on(self, state)
