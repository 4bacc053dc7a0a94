"""Plan of the readings in a step, worked out once for each set of due probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from notebook_probe.probes.reading.cells import Cell, DifferenceCell, FunctionCell
from notebook_probe.probes.reading.options import wanted_options
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.features import Moment, moment_of

__all__ = ["ReadingPlan", "is_of_calls"]


def is_of_calls(probe: Probe) -> bool:
    """Return whether a probe needs a tensor of the module's calls."""
    return probe.quantity.is_of_calls


@dataclass(eq=False)
class ReadingPlan:
    """Readings of one module's calls, of one parameter, or of a batch from the loop.

    All of them are known before it is used.

    Attributes
    ----------
    probes : list of Probe
        All that take part: they share the cost, and an error of a reading.
    cells : dict
        Tensor -> its cells.
    differences : list of DifferenceCell
        Cells of a parameter's update.
    functions : dict
        Moment -> functions called on the tensors themselves.
    seconds : dict
        Moment -> time spent there, for the cost of each probe.
    counter : int
        Index of the place's calls in a frame; -1 for a parameter.
    """

    probes: list[Probe] = field(default_factory=list)
    cells: dict[str, list[Cell]] = field(default_factory=dict)
    differences: list[DifferenceCell] = field(default_factory=list)
    functions: dict[Moment, list[FunctionCell]] = field(default_factory=dict)
    seconds: dict[Moment, float] = field(default_factory=dict)
    counter: int = -1
    is_numbered: bool = False
    """True if some probe keeps the calls of a step apart."""
    reads_attention: bool = False
    """True if some probe needs what is computed inside the calls."""

    def join(self, probe: Probe) -> None:
        """Take part in the readings of this plan."""
        if probe not in self.probes:
            self.probes.append(probe)
            self.is_numbered |= probe.per_call
            self.reads_attention |= "inside" in probe.moments

    def at(self, moment: Moment) -> Sequence[FunctionCell]:
        """Return the functions called at a moment."""
        return self.functions.get(moment, ())

    def wants(self, tensor: str, moment: Moment) -> bool:
        """Return whether a cell or a function of the moment needs the tensor."""
        if self.cells.get(tensor):
            return True
        return any(tensor in function.probe.quantity.needs for function in self.at(moment))

    @cached_property
    def inputs(self) -> Sequence[Cell]:
        """Cells of the inputs of calls."""
        return self.cells.get("input", ())

    @cached_property
    def outputs(self) -> Sequence[Cell]:
        """Cells of the outputs of calls."""
        return self.cells.get("output", ())

    @cached_property
    def output_gradients(self) -> Sequence[Cell]:
        """Cells of the gradients of outputs."""
        return self.cells.get("grad_output", ())

    @cached_property
    def has_only_cells(self) -> bool:
        """True if all that is read of calls are pooled summaries of tensors that come and go."""
        if self.is_numbered or self.reads_attention or self.functions:
            return False
        return self.cells.keys() <= {"input", "output", "grad_output"}

    @cached_property
    def reads_share(self) -> bool:
        """True if a call's share of its inputs' gradients is read."""
        return bool(self.cells.get("grad_input") or self.functions.get("entry"))

    @cached_property
    def reads_entry(self) -> bool:
        """True if something is read when a call begins."""
        if self.is_numbered or self.reads_attention or self.reads_share:
            return True
        return self.wants("input", "forward")

    @cached_property
    def after_cells(self) -> tuple[str, ...]:
        """Summarized tensors that exist once the optimizer has stepped."""
        return tuple(t for t, cells in self.cells.items() if cells and moment_of(t) == "after")

    @cached_property
    def is_read_after(self) -> bool:
        """More than the size of what the optimizer's step changed is read after it."""
        return bool(self.after_cells or self.at("after")) or len(self.differences) > 1

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The options of the parameter's group that something needs."""
        functions = (function for some in self.functions.values() for function in some)
        needs = (need for function in functions for need in function.probe.quantity.needs)
        return wanted_options(dict.fromkeys((*self.cells, *needs)))

    @cached_property
    def keeps_gradient(self) -> bool:
        """A function of the time after the step is given the gradient too."""
        return any("grad" in function.probe.quantity.needs for function in self.at("after"))

    @property
    def is_read_accumulating(self) -> bool:
        """True if something is read at each accumulation."""
        return any(moment_of(tensor) == "accumulated" for tensor in self.cells) or bool(
            self.at("accumulated")
        )

    @property
    def is_read_alone(self) -> bool:
        """True if the parameter's own gradient, or its group, is used."""
        return bool(self.options) or bool(self.at("ready")) or self.keeps_gradient

    @property
    def is_read_when_ready(self) -> bool:
        """True if something is read when the gradients are as the optimizer will apply them."""
        return self.is_read_alone or bool(self.cells.get("grad"))

    def spent(self, moment: Moment, seconds: float) -> None:
        """Add to the cost of a moment."""
        self.seconds[moment] = self.seconds.get(moment, 0.0) + seconds

    def of(self, moment: Moment) -> Sequence[Probe]:
        """Return the probes that share what is read at a moment."""
        return self._sharing.get(moment, ())

    @cached_property
    def _sharing(self) -> dict[Moment, list[Probe]]:
        """The probes of each moment: a budget asks for those of all plans."""
        found: dict[Moment, list[Probe]] = {}
        for probe in self.probes:
            for moment in probe.moments:
                found.setdefault(moment, []).append(probe)
        return found
