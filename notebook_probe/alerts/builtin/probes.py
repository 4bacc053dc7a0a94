"""Rules without series, which query the run itself: unchanged parameters, forgotten calls.

Their conditions are never called; their docstrings describe the rules.
"""

from __future__ import annotations

from types import MappingProxyType

from notebook_probe.alerts.rule import RULES, Rule

__all__ = [
    "evaluated_in_training_mode",
    "stale_probe",
    "trained_in_evaluation_mode",
    "uncleared_gradients",
    "untrained_adapter",
]


def _lies_still() -> None:
    """A probe that was due and has no value: what it waits for."""


stale_probe = Rule(
    "stale_probe",
    _lies_still,
    (),
    MappingProxyType({"due": 3}),
    "{names} had no value at {missed:.0f} due steps: {note}",
    tells=("names", "missed", "note"),
)


def _is_left_as_it_was() -> None:
    """An adapter that is trainable, but unchanged."""


untrained_adapter = Rule(
    "untrained_adapter",
    _is_left_as_it_was,
    (),
    MappingProxyType({"after": 20}),
    "{n_steps} steps have not changed it: {why}",
    tells=("n_steps", "why"),
    severity="severe",
    explained_by=("grad_norm", "update_norm", "weight_norm"),
)


def _adds_up() -> None:
    """Gradients that nothing clears, so that each update applies the sum of all."""


uncleared_gradients = Rule(
    "uncleared_gradients",
    _adds_up,
    (),
    MappingProxyType({"after": 10}),
    "{n_updates} applied the sum of all gradients so far: nothing clears them; "
    "call optimizer.zero_grad() before each backward()",
    tells=("n_updates",),
    severity="severe",
    explained_by=("grad_norm", "update_norm", "grad_cosine"),
)


def _drops_in_evaluation() -> None:
    """An evaluation in training mode, in which dropout leaves out numbers at random."""


evaluated_in_training_mode = Rule(
    "evaluated_in_training_mode",
    _drops_in_evaluation,
    (),
    MappingProxyType({"after": 2}),
    "{n} evaluations were made in training mode, in which this leaves out numbers at random; call "
    "model.eval() before, and model.train() after",
    tells=("n",),
    explained_by=("eval_residual_change", "train_eval_gap"),
)


def _drops_nothing_in_training() -> None:
    """Updates that result from calls in evaluation mode, in which dropout is off."""


trained_in_evaluation_mode = Rule(
    "trained_in_evaluation_mode",
    _drops_nothing_in_training,
    (),
    MappingProxyType({"after": 20}),
    "{n_updates} updates in a row were made in evaluation mode, in which dropout is off and batch "
    "norms keep their statistics; call model.train() before training",
    tells=("n_updates",),
    explained_by=("bn_mean_tid", "eval_residual_change"),
)
for asked in (
    evaluated_in_training_mode,
    stale_probe,
    trained_in_evaluation_mode,
    uncleared_gradients,
    untrained_adapter,
):
    RULES.add(asked.name, asked)
