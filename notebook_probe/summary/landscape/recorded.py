"""A landscape in a record: an array of losses, and an event with the positions of its points."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from notebook_probe.errors import NotLookedError
from notebook_probe.json_numbers import json_value
from notebook_probe.record.format.source import Source

__all__ = ["KIND", "as_detail", "recorded", "series_name"]

KIND = "landscape"
"""Kind of the events."""

PATH = ("path_x", "path_y", "path_loss")
NOT_FINITE = "nan", "inf", "-inf"


def series_name(which: str) -> str:
    """Return the name of the recorded losses of a kind, one array after another."""
    return f"{KIND}_{which}"


def as_detail(dataset: xr.Dataset) -> dict[str, Any]:
    """All but the losses, in what JSON can hold."""
    places = {str(name): own for name, own in dataset.variables.items() if name != "loss"}
    return {
        "which": dataset.attrs["which"],
        "places": {name: [*map(json_value, own.values.tolist())] for name, own in places.items()},
        "attrs": {name: json_value(value) for name, value in dataset.attrs.items()},
    }


def recorded(source: Source, which: str, interval: int = -1) -> xr.Dataset:
    """Return a landscape drawn during a run's training; losses are float32 in a record.

    Raises
    ------
    NotLookedError
        Nothing was drawn of this kind, or not so often.
    """
    details = [*_details(source, which)]
    name = series_name(which)
    losses: Sequence[Any] = [*source.series("", name).values] if details else []
    try:
        detail, loss = details[interval], losses[interval]
    except IndexError:
        raise NotLookedError(
            f"landscape(which={which!r}, interval={interval}): {len(details)} of this kind are in "
            f"the record of {source.name!r}; a collector draws them while it trains where it is "
            f"given batches and loss_fn, and nbp.landscape(summary_dir, ...) afterwards"
        ) from None
    places = {key: np.asarray([*map(_number, own)]) for key, own in detail["places"].items()}
    dataset = xr.Dataset(
        {"loss": (("y", "x"), np.asarray(loss, float), {"long_name": "loss"})},
        {"x": places["x"], "y": places["y"]},
        {key: _number(value) for key, value in detail["attrs"].items()},
    )
    if "number" in places:
        dataset = dataset.assign_coords(number=places["number"])
        dataset = dataset.assign({key: ("number", places[key]) for key in PATH})
    return dataset


def _details(source: Source, which: str) -> Iterable[Mapping[str, Any]]:
    told = (json.loads(one.detail) for one in source.events if one.kind == KIND and one.detail)
    return (detail for detail in told if detail.get("which") == which)


def _number(value: Any) -> Any:
    return float(value) if value in NOT_FINITE else value
