"""The page of what presets and quantities cost, from the figures that come with the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from notebook_probe.quantities import Quantity
from notebook_probe.quantities.define.costs import Cell, Costs, MeasuredCost

__all__ = ["costs_page"]

HEAD = """# What presets and quantities cost

<!-- written by `python -m tools.quantity_pages` -->

The tables show the cost in training steps of an MLP, a ResNet-18 and a small GPT, which
[benchmarks](../explanation/benchmarks.md) describes; for presets also of the MLP trained by AdamW
and of a LeNet, 32 images of 28 x 28. Their steps are short and their batches small, where watching
costs most: `python -m benchmarks quantities` measures it on your machine, and `run.budget(2.0)`
bounds it.
Measured on: MACHINE.

Microseconds are the time per step that a run reports, over all measured modules. Per cent are
relative to the step without it.
"""

PRESETS = """## Presets

Average over the steps of each preset's schedules, in a loop that logs its loss.
"""

QUANTITIES = """## Quantities

Each quantity alone, at all modules that fit, in a due step: with `"every(50)"` it costs a fiftieth
of that per step. A quantity over several steps takes most of it in every step. Shared work, such as
a covariance, is counted here in full for each quantity; together they do it once.
"""

NOTES = """## Without a measurement
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
    if isinstance(cell, MeasuredCost):
        return f"{cell.us:,.{0 if cell.us >= 10 else 1}f} us, {cell}"
    return f"note {notes.setdefault(cell, len(notes) + 1)}"
