"""Ready-made aggregations: of the results of batches one, as they come or at the end.

All count in float64. Online ones are called with what there is so far, None at first, the result of
a batch, and its number from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

__all__ = ["append", "mean_dict", "online_agg", "reduce_mean", "reduce_mean_dict"]

VALIDATION_STEP = "validation_step"
"""Key whose least and largest values are reported."""


def append(agg: list[Any] | None, result: Any, i: int) -> list[Any]:
    """Keep every result, in a list."""
    kept = [] if agg is None else agg
    kept.append(result)
    return kept


def reduce_mean(agg: Any, result: Any, i: int) -> Any:
    """``x·i/(i+1) + y/(i+1)``: the mean over batches, element by element.

    Parameters
    ----------
    agg : number or array
        x, the mean so far; None at first.
    result : number, array or Tensor
        y, of this batch.
    i : int
        Number of the batch, from 0.

    Examples
    --------
    >>> reduce_mean(reduce_mean(None, 1.0, 0), 4.0, 1)
    2.5
    """
    value = _in_float64(result)
    # A running mean instead of a sum, which would grow with the number of batches.
    return value if agg is None else agg * i / (i + 1) + value / (i + 1)


def reduce_mean_dict(
    agg: Mapping[str, Any] | None, result: Mapping[str, Any], i: int
) -> dict[str, Any]:
    """`reduce_mean` of every key.

    Raises
    ------
    ValueError
        A batch has other keys than those before it.

    Examples
    --------
    >>> reduce_mean_dict({"loss": 1.0}, {"loss": 4.0}, 1)
    {'loss': 2.5}
    """
    if agg is not None and agg.keys() != result.keys():
        raise ValueError(
            f"reduce_mean_dict: batch {i} has {', '.join(map(repr, result))}, and those before it "
            f"{', '.join(map(repr, agg))}; every batch has the same keys"
        )
    return {key: reduce_mean(None if agg is None else agg[key], result[key], i) for key in result}


def online_agg(
    agg: dict[str, list[float]] | None, result: Mapping[str, Any], i: int
) -> dict[str, list[float]]:
    """Return for every key the list of the batches' means.

    Raises
    ------
    ValueError
        A batch has a key that those before it have not.

    Examples
    --------
    >>> online_agg(online_agg(None, {"loss": [1.0, 3.0]}, 0), {"loss": 5.0}, 1)
    {'loss': [2.0, 5.0]}
    """
    kept: dict[str, list[float]] = {key: [] for key in result} if agg is None else agg
    for key, value in result.items():
        if key not in kept:
            raise ValueError(
                f"online_agg: batch {i} has {key!r}, and those before it "
                f"{', '.join(map(repr, kept))}; every batch has the same keys"
            )
        kept[key].append(float(np.mean(_in_float64(value))))
    return kept


def mean_dict(results: Sequence[Mapping[str, Any]] | Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """Return for every key the mean over all elements of all batches.

    For ``"validation_step"``, return the smallest and the largest, as ``[min, max]``.

    Parameters
    ----------
    results : list of dict, or dict of list
        Results as stored without an online aggregation, or as `online_agg` returns them.

    Raises
    ------
    ValueError
        There are none.

    Examples
    --------
    >>> mean_dict([{"loss": 1.0, "validation_step": 0}, {"loss": 4.0, "validation_step": 1}])
    {'loss': 2.5, 'validation_step': [0, 1]}
    """
    if not results:
        raise ValueError("mean_dict of no results: the validation has no step")
    if isinstance(results, Mapping):
        columns = {key: [*values] for key, values in results.items()}
    else:
        for i, result in enumerate(results):
            if result.keys() != results[0].keys():
                raise ValueError(
                    f"mean_dict: batch {i} has {', '.join(map(repr, result))}, and the first "
                    f"{', '.join(map(repr, results[0]))}; every batch has the same keys"
                )
        columns = {key: [result[key] for result in results] for key in results[0]}
    return {key: _aggregated(key, values) for key, values in columns.items()}


def _aggregated(key: str, values: Sequence[Any]) -> Any:
    elements = [np.ravel(_on_host(value)) for value in values]
    every = np.concatenate(elements)
    if key == VALIDATION_STEP:
        return [every.min().item(), every.max().item()]
    # float32 loses the small terms of a long sum.
    return float(every.astype(np.float64).mean())


def _in_float64(value: Any) -> Any:
    """Return a number, or an array for several."""
    found = np.asarray(_on_host(value), dtype=np.float64)
    return found if found.ndim else float(found)


def _on_host(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    value = value.detach().cpu()
    # numpy has no bfloat16; float64 holds every float of torch exactly.
    return value.double().numpy() if value.is_floating_point() else value.numpy()
