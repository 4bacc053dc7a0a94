"""The rules that come with the package; thresholds without a source are rules of thumb."""

from notebook_probe.alerts.builtin import (
    adversaries,
    attention,
    execution,
    facts,
    gradients,
    layers,
    numbers,
    probes,
    references,
    rollouts,
    training,
)

__all__ = [
    "adversaries",
    "attention",
    "execution",
    "facts",
    "gradients",
    "layers",
    "numbers",
    "probes",
    "references",
    "rollouts",
    "training",
]
