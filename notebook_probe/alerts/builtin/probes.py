"""What no series tells of, so that the run itself is asked: what lies still, what is forgotten."""

from __future__ import annotations

from types import MappingProxyType

from notebook_probe.alerts.rule import RULES, Rule

__all__ = ["evaluated_in_training_mode", "stale_probe", "uncleared_gradients", "untrained_adapter"]


def _asked_of_the_run() -> None:
    """A rule without quantities is followed by whoever knows what it is about."""


stale_probe = Rule(
    "stale_probe",
    _asked_of_the_run,
    (),
    MappingProxyType({"due": 3}),
    "{names} had no value at {missed:.0f} due steps: {note}",
    tells=("names", "missed", "note"),
)
untrained_adapter = Rule(
    "untrained_adapter",
    _asked_of_the_run,
    (),
    MappingProxyType({"after": 20}),
    "{n_steps} steps have left it as it was: {why}",
    tells=("n_steps", "why"),
    severity="severe",
    explained_by=("grad_norm", "update_norm", "weight_norm"),
)
uncleared_gradients = Rule(
    "uncleared_gradients",
    _asked_of_the_run,
    (),
    MappingProxyType({"after": 10}),
    "{n_updates} updates in a row applied the sum of all gradients so far: nothing clears them; "
    "call optimizer.zero_grad() before each backward()",
    tells=("n_updates",),
    severity="severe",
    explained_by=("grad_norm", "update_norm", "grad_cosine"),
)
evaluated_in_training_mode = Rule(
    "evaluated_in_training_mode",
    _asked_of_the_run,
    (),
    MappingProxyType({"after": 2}),
    "{n} evaluations were made in training mode, in which this leaves out numbers at random; call "
    "model.eval() before, and model.train() after",
    tells=("n",),
    explained_by=("eval_residual_change", "train_eval_gap"),
)
for asked in (evaluated_in_training_mode, stale_probe, uncleared_gradients, untrained_adapter):
    RULES.add(asked.name, asked)
