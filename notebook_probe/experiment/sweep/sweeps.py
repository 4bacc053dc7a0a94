"""A sweep: which configurations there are, and running them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from notebook_probe.experiment.sweep.child import Function
from notebook_probe.experiment.sweep.configuration import Configuration, configured
from notebook_probe.experiment.sweep.outcome import FINISHED, Outcome, forget_outcome, read_outcome
from notebook_probe.experiment.sweep.results import SweepResults, results_of
from notebook_probe.experiment.sweep.running import check_can_be_sent, run_all
from notebook_probe.experiment.sweep.space import drawn_from, values_of

__all__ = ["Sweep", "sweep"]

FOLDER = "sweep"
DRAWS_EACH = 100
"""Maximum draws until one differs from all before."""


@dataclass(frozen=True, repr=False)
class Sweep(Sequence[Configuration]):
    """Configurations in order; see `sweep`.

    Attributes
    ----------
    space : mapping of str to values or distribution
        The space passed to `sweep`.
    base : mapping
        The base passed to `sweep`.
    configurations : tuple of Configuration
    """

    space: Mapping[str, Any]
    base: Mapping[str, Any]
    configurations: tuple[Configuration, ...]

    @overload
    def __getitem__(self, index: int) -> Configuration: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Configuration]: ...
    def __getitem__(self, index: int | slice) -> Configuration | Sequence[Configuration]:
        return self.configurations[index]

    def __len__(self) -> int:
        return len(self.configurations)

    def __repr__(self) -> str:
        lines = [f"{one.id}  {one.name}" for one in self]
        return "\n".join([f"{len(self)} configurations of {', '.join(self.space)}", *lines])

    def run(
        self,
        function: Function,
        processes: int = 2,
        folder: str | os.PathLike[str] = FOLDER,
    ) -> SweepResults:
        """Train each configuration that has not finished, in processes on this machine.

        A restarted sweep continues: it skips configurations that finished in this folder and trains
        again those that failed or were interrupted. A configuration that fails or is killed does
        not stop others. Ctrl-C ends only the processes that were started here.

        Parameters
        ----------
        function : callable
            Trains one configuration; called as ``function(configuration)``. It may write its record
            in ``configuration.folder``, return the record's location, or return numbers by name.
            ``function`` must be importable by other processes.
        processes : int
            Number of configurations that train at a time; 0 trains in this process, one after the
            other.
        folder : path
            Location of the configurations' folders, named by id; ``output.txt`` in each has the
            printed text.

        Returns
        -------
        SweepResults
            A `Lineage` table with a row for each configuration.

        Raises
        ------
        ValueError
            ``processes`` is below 0, or another process does not find the function.

        Examples
        --------
        >>> results = nbp.sweep({"lr": [0.1, 0.3]}).run(train_digits)  # doctest: +SKIP
        >>> results.sort("result.accuracy", descending=True)           # doctest: +SKIP
        """
        if processes < 0:
            raise ValueError(f"processes={processes!r}: 0 or more")
        if not callable(function):
            raise TypeError(f"run({function!r}): a function of a configuration is expected")
        if processes:
            check_can_be_sent(function)
        left = [*self._unfinished(Path(folder))]
        n_before = len(self) - len(left)
        if n_before:
            print(f"{n_before} of {len(self)} have finished before")
        run_all(function, left, processes, _Told(n_before, len(self)))
        return self.results(folder)

    def results(self, folder: str | os.PathLike[str] = FOLDER) -> SweepResults:
        """Return the outcomes so far, without training."""
        return results_of(self, Path(folder))

    def _unfinished(self, folder: Path) -> Iterator[Configuration]:
        """Yield the unfinished configurations, each with its old outcome removed."""
        for one in self:
            own = folder.absolute() / one.id
            found = read_outcome(own)
            if found is not None and found.state == FINISHED:
                continue
            own.mkdir(parents=True, exist_ok=True)
            forget_outcome(own)
            yield replace(one, folder=str(own))


class _Told:
    """Report of each ended training."""

    def __init__(self, n_before: int, n: int) -> None:
        self._n_ended, self._n = n_before, n

    def __call__(self, configuration: Configuration, outcome: Outcome) -> None:
        self._n_ended += 1
        how = f"{outcome.state} in {outcome.duration_s:.3g} s"
        why = f": {outcome.error}" if outcome.error else ""
        print(f"{self._n_ended} of {self._n}: {configuration.name}: {how}{why}")


def sweep(
    space: Mapping[str, Any],
    base: Mapping[str, Any] | None = None,
    *,
    kind: Literal["grid", "random"] = "grid",
    n: int | None = None,
    seed: int = 0,
) -> Sweep:
    """Return configurations over a space: all combinations of lists, or random draws.

    Parameters
    ----------
    space : mapping of str to values or distribution
        By names with dots, ``"model_params.depth"``: a list, or for a random search what
        `uniform`, `log_uniform`, `integers` and `choice` of `notebook_probe.experiment.sweep` give.
    base : mapping, optional
        Nested dicts into which the values are put; unchanged itself.
    kind : "grid" or "random"
    n : int, optional
        Number of random draws, or of the first combinations of a grid. A longer search begins with
        the draws of a shorter one.
    seed : int
        Seed of the draws.

    Returns
    -------
    Sweep
        A sequence of `Configuration`: plain nested dicts, each with an id that depends only on its
        contents. No configuration occurs twice, so a random search over few values may return fewer
        than ``n``.

    Raises
    ------
    ValueError, TypeError
        The kind is unknown, ``n`` is missing, or the space, or a part of it, has no values.

    Examples
    --------
    >>> found = sweep({"model_params.depth": [2, 3], "lr": [0.1]}, {"model_params": {"width": 8}})
    >>> [one.name for one in found], found[0]["model_params"]
    (['depth 2, lr 0.1', 'depth 3, lr 0.1'], {'width': 8, 'depth': 2})
    """
    if not isinstance(space, Mapping):
        raise TypeError(
            f"sweep({space!r}): values by names are expected, such as {{'lr': [0.1, 0.3]}}"
        )
    if wrong := [path for path in space if not _is_path(path)]:
        raise ValueError(f"{wrong[0]!r} is no name; names with dots are, such as 'model_params.lr'")
    if not space:
        raise ValueError(
            f"sweep({space!r}): a space has at least one name, such as {{'lr': [0.1]}}"
        )
    if kind not in ("grid", "random"):
        raise ValueError(f"kind={kind!r}: 'grid' or 'random'")
    if n is not None and n < 1:
        raise ValueError(f"n={n!r}: at least 1")
    if kind == "random" and n is None:
        raise ValueError("a random search needs n, how many are drawn")
    base = dict(base or {})
    chosen = _drawn(space, n or 0, seed) if kind == "random" else _grid(space)
    distinct: dict[str, Configuration] = {}
    for values in chosen:
        if len(distinct) == n:
            break
        one = configured(base, values)
        # Random draws over a small space repeat; a configuration is trained once.
        distinct.setdefault(one.id, one)
    return Sweep(dict(space), base, tuple(distinct.values()))


def _is_path(path: object) -> bool:
    return isinstance(path, str) and all(part.strip() for part in path.split("."))


def _grid(space: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All combinations; the last name changes fastest."""
    lists = [values_of(given, path) for path, given in space.items()]
    return (dict(zip(space, values, strict=True)) for values in product(*lists))


def _drawn(space: Mapping[str, Any], n: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield draws, with a separate stream per name, so that names do not affect each other."""
    parts = {path: drawn_from(given, path) for path, given in space.items()}
    streams = {path: np.random.default_rng([seed, *path.encode()]) for path in parts}
    draws = ({path: one.sample(streams[path]) for path, one in parts.items()} for _ in iter(int, 1))
    # Bounded, as a space may have fewer than n distinct configurations. `iter(int, 1)` never ends.
    return islice(draws, n * DRAWS_EACH)
