"""The data of a training or a validation, made by the user's function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from notebook_probe.errors import ParamError
from notebook_probe.experiment.building.calling import placed
from notebook_probe.experiment.params.sections import DataParams
from notebook_probe.train.data.dataset import begin_again

__all__ = ["Placed", "make_data"]


def make_data(params: DataParams, where: str, size: int | None = None) -> Iterable[Any]:
    """Call the function with the size of a batch, or of the minibatches in which it is drawn.

    Raises
    ------
    ParamError
        ``func`` does not return an iterable.
    """
    size = params.batch_size if size is None else size
    data = params.func(**({} if size is None else {"batch_size": size}), **params.rest)
    if not isinstance(data, Iterable):
        raise ParamError(
            f"{where}['func'] returned {type(data).__name__}; an iterable of dicts is expected"
        )
    return data


class Placed:
    """Data with its tensors on a device, otherwise unchanged.

    Parameters
    ----------
    data : iterable of dicts
    device : device or None
    """

    def __init__(self, data: Iterable[Mapping[str, Any]], device: torch.device | None) -> None:
        self._data, self._device = data, device

    def __iter__(self) -> Iterator[dict[str, Any]]:
        begin_again(self._data)
        return (placed(batch, self._device) for batch in self._data)

    def __len__(self) -> int:
        return len(self._data)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)
