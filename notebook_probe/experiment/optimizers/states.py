"""States of several optimizers as one, in torch's own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["joined", "split"]

State: TypeAlias = "dict[str, Any]"


def joined(states: Sequence[State]) -> State:
    """Return one state with all groups; parameters are numbered consecutively."""
    if len(states) == 1:
        return states[0]
    groups: list[State] = []
    values: dict[Any, Any] = {}
    n = 0
    for state in states:
        groups += [
            {**one, "params": [n + i for i in one["params"]]} for one in state["param_groups"]
        ]
        values |= {n + i: of for i, of in state["state"].items()}
        n += sum(len(group["params"]) for group in state["param_groups"])
    return {"state": values, "param_groups": groups}


def split(state: Mapping[str, Any], n_groups: Sequence[int]) -> list[State]:
    """Split a joined state, by the number of groups of each optimizer.

    Raises
    ------
    ValueError
        There are more or fewer.
    """
    if len(n_groups) == 1:
        return [dict(state)]
    groups = state["param_groups"]
    if len(groups) != sum(n_groups):
        raise ValueError(f"the state has {len(groups)} groups of parameters, not {sum(n_groups)}")
    parts, begin, n = [], 0, 0
    for size in n_groups:
        own = groups[begin : begin + size]
        ids = {i for group in own for i in group["params"]}
        parts.append({
            "state": {i - n: of for i, of in state["state"].items() if i in ids},
            "param_groups": [{**one, "params": [i - n for i in one["params"]]} for one in own],
        })  # fmt: skip
        # torch numbers the parameters of one state dict from 0, through all of its groups.
        begin, n = begin + size, n + len(ids)
    return parts
