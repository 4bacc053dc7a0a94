"""Options of ``nbp run``, handed to the program in its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["LAUNCH", "VARIABLES", "LaunchOptions"]

LAUNCH = "NOTEBOOK_PROBE_LAUNCH"
VARIABLES = {
    name: f"NOTEBOOK_PROBE_{name.upper()}"
    for name in ("store", "name", "probes", "budget", "on_compiled", "model", "alerts", "control")
}
"""Variable of the environment of each option."""
NO_BUDGET = "none"


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """Options of watching, as text; empty for the default.

    Attributes
    ----------
    store, name, on_compiled : str
        Same as in `notebook_probe.watch`.
    probes : str
        Names of presets, separated by commas.
    budget : str
        A number, or ``none``.
    model : str
        Class of the model to watch; by default the first one counts.
    alerts : str
        1 to measure everything that rules need.
    control : str
        1 to allow control from elsewhere.
    """

    store: str = ""
    name: str = ""
    probes: str = ""
    budget: str = ""
    on_compiled: str = ""
    model: str = ""
    alerts: str = ""
    control: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> LaunchOptions:
        """Return the options in an environment.

        Examples
        --------
        >>> LaunchOptions.read({"NOTEBOOK_PROBE_STORE": "runs/first.zarr"}).store
        'runs/first.zarr'
        """
        return cls(**{name: environment.get(key, "") for name, key in VARIABLES.items()})

    def of_watch(self) -> dict[str, Any]:
        """Return the arguments of `notebook_probe.watch`.

        Raises
        ------
        ValueError
            The budget is neither a number nor ``none``.

        Examples
        --------
        >>> LaunchOptions(probes="default, attention", alerts="1", budget="none").of_watch()
        {'probes': ['default', 'attention', 'alerts'], 'budget': None}
        """
        presets = [one.strip() for one in (self.probes or "default").split(",")]
        if self.alerts == "1" and "alerts" not in presets:
            presets.append("alerts")
        given = {"store": self.store, "name": self.name, "on_compiled": self.on_compiled}
        found: dict[str, Any] = {name: text for name, text in given.items() if text}
        found["probes"] = presets
        if self.budget:
            found["budget"] = budget_of(self.budget)
        return found


def budget_of(text: str) -> float | None:
    """Parse a budget in per cent.

    Examples
    --------
    >>> budget_of("2.5"), budget_of("none")
    (2.5, None)
    """
    return None if text.lower() == NO_BUDGET else float(text)
