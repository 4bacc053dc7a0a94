"""The modules in the order in which something travels through them.

The order of calls is not recorded: the order of definition is used instead, which is the same in
models that call their modules as they list them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from notebook_probe.alerts.following import nearest
from notebook_probe.alerts.rule import Flow
from notebook_probe.record.format.source import ROOT, ModuleRow

__all__ = ["flow_order"]


def flow_order(
    labels: Sequence[str], modules: Sequence[ModuleRow], flow: Flow | None
) -> npt.NDArray[np.intp]:
    """Return indices of labels in the order in which the flow reaches them.

    A module's output exists once those inside it have theirs, and its gradient is complete after
    theirs: forward and backward a module is after all modules inside it. Without a flow, it is the
    order of definition.

    Parameters
    ----------
    labels : sequence of str
        Modules, or what belongs to one; what belongs to none is where the model is.
    modules : sequence of ModuleRow
        All of the model, in the order of definition.

    Examples
    --------
    >>> rows = [ModuleRow(name, "", 0, 0, above) for name, above in
    ...         [("", -1), ("a", 0), ("a.1", 1), ("b", 0)]]
    >>> labels = ["(root)", "a", "a.1", "b"]
    >>> [labels[i] for i in flow_order(labels, rows, "forward")]
    ['a.1', 'a', 'b', '(root)']
    >>> [labels[i] for i in flow_order(labels, rows, "backward")]
    ['b', 'a.1', 'a', '(root)']
    """
    rows = {row.name or ROOT: i for i, row in enumerate(modules)}
    ranks = [*_ranks(modules, flow), 0]  # the last one for modules without a position
    return np.argsort([ranks[nearest(label, rows)] for label in labels], kind="stable")


def _ranks(modules: Sequence[ModuleRow], flow: Flow | None) -> list[int]:
    """Return the rank of each module."""
    definition = range(len(modules))
    if flow != "forward":
        return [-i for i in definition] if flow == "backward" else [*definition]
    last = [*definition]  # of all inside
    for i in reversed(definition):
        above = modules[i].parent
        if above >= 0:
            last[above] = max(last[above], last[i])
    ranks = [0] * len(modules)
    for rank, i in enumerate(sorted(definition, key=lambda i: (last[i], -i))):
        ranks[i] = rank
    return ranks
