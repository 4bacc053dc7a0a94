"""Description of which modules train, and in which parameter groups, for the record."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import nn
from torch.optim import Optimizer

from notebook_probe.record.format.schema import module_label
from notebook_probe.run.settings.group_text import group_text

__all__ = ["ownership_text"]


def ownership_text(modules: Mapping[str, nn.Module], optimizers: Sequence[Optimizer]) -> str:
    """Return the groups of the optimizers, and the modules whose own parameters are in each: JSON.

    Examples
    --------
    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    >>> model[0] = model[0].requires_grad_(False)
    >>> optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
    >>> json.loads(ownership_text(dict(model.named_modules()), [optimizer]))["modules"]
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'trainable': False, 'groups': [], 'names': ['0']},
     {'trainable': True, 'groups': [0], 'names': ['1']}]
    """
    every = [(one, index) for one in optimizers for index in range(len(one.param_groups))]
    holders: defaultdict[int, list[int]] = defaultdict(list)
    for place, (optimizer, index) in enumerate(every):
        for value in optimizer.param_groups[index]["params"]:
            holders[id(value)].append(place)
    alike: defaultdict[tuple[bool, tuple[int, ...]], list[str]] = defaultdict(list)
    for name, trainable, groups in _owned(modules, holders):
        alike[trainable, groups].append(module_label(name))
    return json.dumps(
        {
            "groups": [_group(one, index) for one, index in every],
            "modules": [
                {"trainable": trainable, "groups": [*groups], "names": names}
                for (trainable, groups), names in alike.items()
            ],
        }
    )


def _owned(
    modules: Mapping[str, nn.Module], holders: Mapping[int, list[int]]
) -> Iterator[tuple[str, bool, tuple[int, ...]]]:
    """Yield the modules that have own parameters: whether these train, and their groups."""
    for name, module in modules.items():
        own = [*module.parameters(recurse=False)]
        if own:
            groups = sorted({place for one in own for place in holders.get(id(one), ())})
            yield name, any(one.requires_grad for one in own), tuple(groups)


def _group(optimizer: Optimizer, index: int) -> dict[str, Any]:
    rate = optimizer.param_groups[index].get("lr")
    return {
        "optimizer": type(optimizer).__name__,
        "lr": rate if isinstance(rate, int | float) else None,  # a tensor may be on a device
        "contents": group_text(optimizer, index),
    }
