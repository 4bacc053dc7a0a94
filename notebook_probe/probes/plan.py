"""What must be read where in a step, worked out from the probes that are due in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from notebook_probe.probes.probe import Probe

__all__ = ["PlacePlan", "plan"]


@dataclass(slots=True)
class PlacePlan:
    """One place's readings in a step."""

    parts: dict[str, frozenset[str]] = field(default_factory=dict)
    """Tensor -> what of it to summarise, the union over the quantities that share it."""
    probes: dict[str, tuple[Probe, ...]] = field(default_factory=dict)
    """Moment -> probes whose function is called on the tensors themselves."""

    def add(self, probe: Probe) -> None:
        quantity = probe.quantity
        if quantity.pools:
            for feature in quantity.features:
                known = self.parts.get(feature.tensor, frozenset())
                self.parts[feature.tensor] = known | {feature.part}
        else:
            self.probes[quantity.moment] = (*self.probes.get(quantity.moment, ()), probe)

    def reads(self, *tensors: str) -> bool:
        """Tell whether any of these tensors is wanted here."""
        wanted = {
            need for probes in self.probes.values() for p in probes for need in p.quantity.needs
        }
        return any(tensor in self.parts or tensor in wanted for tensor in tensors)


def plan(probes: Iterable[Probe]) -> dict[str, PlacePlan]:
    """Place -> what its due probes need."""
    places: dict[str, PlacePlan] = {}
    for probe in probes:
        places.setdefault(probe.place, PlacePlan()).add(probe)
    return places
