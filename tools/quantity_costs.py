"""The page of what presets and quantities cost, from the figures that come with the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from notebook_probe.quantities import Quantity
from notebook_probe.quantities.define.costs import Cell, Costs, Measured

__all__ = ["costs_page"]

HEAD = """# What presets and quantities cost

<!-- written by `python -m tools.quantity_pages` -->

Of training steps of an MLP, a ResNet-18 and a small GPT, as
[benchmarks](../explanation/benchmarks.md) describes them; presets also of the MLP trained by
AdamW and of a LeNet, 32 images of 28 x 28. Their steps are short and their batches small, where
watching costs most: `python -m benchmarks quantities` measures it where you are, and
`run.budget(2.0)` bounds it.
Measured on: MACHINE.

Microseconds are what a run says that it takes of a step, over all modules at which something is
measured. Per cent are of the step without it.
"""

PRESETS = """## Presets

On average over the steps of a preset's own schedules, in a loop that logs its loss.
"""

QUANTITIES = """## Quantities

Each alone, wherever it fits, in a step in which it is due: on `"every(50)"` it costs a fiftieth of
that per step. A quantity that is of several steps takes most of it in every one. What several
share, such as a covariance, each of them pays here in full; together they pay it once.
"""

NOTES = """## Where there is nothing to measure
"""


def costs_page(
    costs: Costs,
    presets: Iterable[str],
    quantities: Iterable[Quantity],
    link: Callable[[Quantity], str],
) -> str:
    """The page's text; ``link`` is a quantity's name that leads to its section."""
    notes: dict[str, int] = {}

    def table(first: str, shown: Mapping[str, Mapping[str, Cell]]) -> list[str]:
        workloads = [*dict.fromkeys(name for row in shown.values() for name in row)]
        lines = (
            (name, *(_cell(row.get(workload), notes) for workload in workloads))
            for name, row in shown.items()
        )
        return [*_head(first, workloads), *(f"| {' | '.join(line)} |" for line in lines)]

    of_presets = {f"`{name}`": costs.presets.get(name, {}) for name in presets}
    of_quantities = {
        f"{link(each)} | `{each.cost}`": costs.quantities.get(each.name, {}) for each in quantities
    }
    lines = [HEAD.replace("MACHINE", costs.machine), PRESETS, *table("preset", of_presets)]
    lines += ["", QUANTITIES, *table("quantity | class", of_quantities)]
    told = [f"* note {number}: {reason}" for reason, number in notes.items()]
    return "\n".join([*lines, "", NOTES, *told]) + "\n"


def _head(first: str, workloads: Iterable[str]) -> list[str]:
    names = f"| {' | '.join((first, *workloads))} |"
    return [names, "|---" * (names.count("|") - 1) + "|"]


def _cell(cell: Cell | None, notes: dict[str, int]) -> str:
    if cell is None:
        return "not measured"
    if isinstance(cell, Measured):
        return f"{cell.us:,.{0 if cell.us >= 10 else 1}f} us, {cell}"
    return f"note {notes.setdefault(cell, len(notes) + 1)}"
