"""Any iterable as a dataset with a name and a position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from notebook_probe.run.loop.passes import samples_per_batch
from notebook_probe.train.data.batch import Batch, Spec, check_batches, read_item
from notebook_probe.train.data.loader_generators import (
    begin_with_new_workers,
    loader_generators,
    set_loader_generators,
)
from notebook_probe.train.generators import generator_states, same_generators, set_generators

__all__ = ["DataError", "Dataset", "Resettable", "as_dataset", "begin_again", "for_evaluation"]


@runtime_checkable
class Resettable(Protocol):
    """User's data set with a name, which starts again on request."""

    name: str

    def __iter__(self) -> Iterator[Any]: ...
    def reset(self) -> None: ...


class DataError(RuntimeError):
    """The data set raised; its own error is the cause."""


class Dataset:
    """Batches of an iterable, drawn one after another over any number of calls.

    Parameters
    ----------
    source : iterable
        A DataLoader, a list, or another iterable. If it has ``reset()``, that is called before each
        pass except the first. An iterator with ``reset()`` is reset before every pass that begins
        at the start.
    name : str, optional
        Name of the data set; by default the source's ``name``, else ``"train"``. It begins the
        names of results of an evaluation.

    Attributes
    ----------
    position : int
        Batches drawn in this pass.
    keeps_workers : bool
        True if the persistent workers of a DataLoader stay from pass to pass. Otherwise each pass
        begins with new workers, so that a training continues from a checkpoint as if it had never
        stopped.

    Examples
    --------
    >>> data = Dataset([(1.0, 0), (2.0, 1)], name="pairs")
    >>> next(data).inputs, data.position, len(data)
    ((1.0,), 1, 2)
    """

    def __init__(self, source: Iterable[Any], name: str | None = None) -> None:
        if not isinstance(source, Iterable):
            raise TypeError(f"{type(source).__name__} is no data: an iterable of batches is needed")
        check_batches(f"data {type(source).__name__}", source)
        self.source = source
        self.name = str(name or getattr(source, "name", None) or "train")
        self.position = 0
        self.keeps_workers = False
        self._batches: Iterator[Any] | None = None
        self._shapes: dict[Spec, tuple[int, int, tuple[str, ...]]] = {}
        self._begun_with: Mapping[str, Any] = {}

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]

    @property
    def length(self) -> int | None:
        """Batches of a pass; None if unknown."""
        try:
            return len(self.source)  # type: ignore[arg-type]
        except TypeError:
            return None

    @property
    def samples_per_batch(self) -> float | None:
        """Average over a pass; None if the source does not say."""
        return samples_per_batch(self.source)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """Return the next batch; StopIteration at the end of the pass, repeatedly until `reset`.

        Raises
        ------
        DataError
            The source raises.
        ValueError
            For what is no batch, or not like those before it.
        """
        try:
            if self._batches is None:
                if not self.keeps_workers:
                    begin_with_new_workers(self.source)
                # Before iter(), as shuffling and seeds of workers are drawn inside it.
                self._begun_with = self._generators()
                self._batches = iter(self.source)
            item = next(self._batches)
        except StopIteration:
            raise
        except Exception as error:
            where = f"data {self.name!r} raised after {self.position} batches"
            raise DataError(f"{where}: {type(error).__name__}: {error}") from error
        try:
            batch = read_item(item)
        except ValueError as error:
            raise ValueError(f"{self._place}: {error}") from None
        shape = batch.shape
        if self._shapes.setdefault(batch.spec, shape) != shape:
            raise ValueError(f"{self._place}{self._unlike(batch)}")
        self.position += 1
        return batch

    @property
    def _place(self) -> str:
        return f"data {self.name!r}, batch {self.position}"

    def _unlike(self, batch: Batch) -> str:
        kind = "" if batch.spec is None else f" of {batch.spec!r}"
        now, before = _words(batch.shape), _words(self._shapes[batch.spec])
        return f"{kind}: {now}; before {before}, and all batches of one kind must have one form"

    def reset(self) -> None:
        """Start a new pass.

        Raises
        ------
        RuntimeError
            The source is an iterator, which can be iterated only once.
        """
        is_again = begin_again(self.source)
        if not is_again and self._batches is self.source and self.position:
            raise RuntimeError(
                f"data {self.name!r} is {type(self.source).__name__}, an iterator that can be gone "
                f"through once; more passes need what can be, such as a list or a DataLoader"
            )
        if not is_again and isinstance(self.source, Resettable) and self._batches is not None:
            self.source.reset()
        self._batches, self.position = None, 0

    # ---------------------------------------------------------------- continuing later

    def state_dict(self, ahead: int = 0) -> dict[str, Any]:
        """Return the position: the source's state, or else the number of batches to draw.

        The last ``ahead`` batches, which were drawn for an incomplete step, are drawn again.
        """
        position = self.position - ahead
        state: dict[str, Any] = {"position": position, "begun_with": dict(self._begun_with)}
        own = getattr(self.source, "state_dict", None)
        if callable(own):
            state["source"] = own()
        else:
            state["loader"] = loader_generators(self.source)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """Continue from `state_dict`; return the number of batches drawn to reach it.

        A source with ``load_state_dict``, such as torchdata's StatefulDataLoader, draws none.
        """
        self._batches, self.position = None, 0
        if "source" in state and callable(getattr(self.source, "load_state_dict", None)):
            self.source.load_state_dict(state["source"])  # type: ignore[attr-defined]
            self.position = state["position"]
            self._begun_with = state["begun_with"]
            if self.position:
                self._batches = iter(self.source)
            return 0
        # The training has had the random numbers of these batches already.
        with same_generators():
            begin_again(self.source)
            self._draw_again(state)
        set_loader_generators(self.source, state.get("loader", []))
        return self.position

    def _draw_again(self, state: Mapping[str, Any]) -> None:
        if not state["position"]:
            return
        # What the pass began with, for the same order.
        set_generators(state["begun_with"]["process"])
        set_loader_generators(self.source, state["begun_with"]["loader"])
        while self.position < state["position"]:
            try:
                next(self)
            except StopIteration:
                raise ValueError(
                    f"data {self.name!r} has {self.position} batches, and the checkpoint was made "
                    f"after {state['position']}"
                ) from None

    def _generators(self) -> dict[str, Any]:
        return {"process": generator_states(), "loader": loader_generators(self.source)}


def _words(shape: tuple[int, int, tuple[str, ...]]) -> str:
    n_inputs, n_labels, names = shape
    keywords = f", keywords {', '.join(names)}" if names else ""
    return f"{n_inputs} inputs, {n_labels} labels{keywords}"


def as_dataset(data: Any, nameless: str = "train") -> Dataset:
    """Return the dataset itself, or one made from an iterable, with a default name."""
    if isinstance(data, Dataset):
        return data
    return Dataset(data, getattr(data, "name", None) or nameless)


def begin_again(source: object) -> bool:
    """Reset an iterator with ``reset()``, which continues where it is; return whether it is one."""
    reset = getattr(source, "reset", None)
    if not (callable(reset) and isinstance(source, Iterator)):
        return False
    reset()
    return True


def for_evaluation(data: Any) -> Dataset:
    """Return data to evaluate as a data set, whose loader keeps its persistent workers."""
    if isinstance(data, Dataset):
        return data
    found = as_dataset(data, "eval")
    found.keeps_workers = True
    return found
