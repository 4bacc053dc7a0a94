"""Facts of parameters, optimizers and learning rates, and how the rule of a fact is registered."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from notebook_probe.alerts.rule import RULES, Rule, Severity

__all__ = ["FACTS_OF_UPDATES", "fact"]


def _described(about: str) -> Callable[[], None]:
    """Return the condition of a fact, which is never called: its docstring describes the fact."""

    def found_by_the_run() -> None:
        """Do nothing."""

    found_by_the_run.__doc__ = about
    return found_by_the_run


def fact(
    name: str,
    about: str,
    says: str,
    tells: tuple[str, ...] = (),
    severity: Severity = "warning",
    explained_by: tuple[str, ...] = (),
    again: int | None = None,
    consequence_of: tuple[str, ...] = (),
    **thresholds: float,
) -> str:
    """Register the rule of a fact, and return its name."""
    RULES.add(
        name,
        Rule(
            name,
            _described(about),
            (),
            MappingProxyType(thresholds),
            says,
            tells=tells,
            again=again,
            severity=severity,
            explained_by=explained_by,
            consequence_of=consequence_of,
        ),
    )
    return name


FACTS_OF_UPDATES = (
    fact(
        "not_in_optimizer",
        "Parameters with a gradient that no optimizer has, behind one that an optimizer has.",
        "{n} parameters have gradients that no optimizer applies: they hold {held}; make "
        "the optimizer after the last change of the model, or call "
        "optimizer.add_param_group()",
        ("n", "held"),
        "severe",
        after=20,
    ),
    fact(
        "cut_off",
        "A layer that a line of code cuts off from the loss.",
        "the layer is called and an optimizer holds it, but in {n_steps} steps no gradient has "
        "reached it: the graph is cut {where}",
        ("n_steps", "where"),
        "severe",
        ("grad_norm", "output_grad_norm"),
        after=20,
    ),
    fact(
        "unused_output",
        "A layer that is called and trained, and whose output the loss does not use.",
        "the layer is called and an optimizer holds it, but the loss does not use its output; if "
        "it should, add it to the loss",
        ("n_steps",),
        "remark",
    ),
    fact(
        "gradient_taken_away",
        "A layer that the loss reaches, and whose gradient is None at each update.",
        "the loss reaches it, but its gradient was gone at each of {n_steps} updates: something "
        "sets it to None after backward()",
        ("n_steps",),
        "remark",
    ),
    fact(
        "gradients_cleared_early",
        "Updates at which no parameter has a gradient, though the loss reaches them.",
        "the loss reaches the layers, but no parameter had a gradient at any of {n_steps} updates: "
        "zero_grad() comes between backward() and step(), or step() comes before backward(); the "
        "order is zero_grad(), backward(), step()",
        ("n_steps",),
        "severe",
        ("grad_norm", "update_ratio"),
    ),
    fact(
        "equal_units",
        "Layers all of whose units have the same weights, some updates after the start.",
        "all units of the layer still have exactly the same weights after {after:.0f} steps: they "
        "get the same gradients and stay the same; begin with random weights, such as "
        "nn.init.kaiming_uniform_(layer.weight)",
        (),
        "severe",
        ("weight_norm", "effective_rank"),
        after=20,
    ),
    fact(
        "only_norms_train",
        "A network of which all but normalization layers is frozen, the head too.",
        "only normalization layers require a gradient; {n} other layers are frozen, the last one "
        "too: model.requires_grad_(True), or at least the last layer",
        ("n",),
    ),
    fact(
        "frozen_but_moving",
        "Frozen parameters that an update changes, by a gradient from before.",
        "{n} parameters do not require a gradient, but updates still apply their last one: call "
        "optimizer.zero_grad(set_to_none=True) once after freezing",
        ("n",),
        "severe",
        ("update_ratio",),
    ),
    fact(
        "frozen_late",
        "Parameters that an optimizer has updated, and that do not require a gradient any more.",
        "{n} parameters were trained, and are frozen since this step; if they were to be frozen "
        "from the beginning, as where model.train() freezes them, call it before the first step",
        ("n",),
        "remark",
        ("update_ratio", "grad_norm"),
    ),
    fact(
        "step_without_effect",
        "A weight that an update with a gradient leaves exactly the same.",
        "updates with a gradient and a learning rate above 0 do not change the weights at all: "
        "{why}",
        ("why",),
        "warning",
        ("update_ratio", "grad_norm"),
    ),
    fact(
        "updates_undone",
        "Weights that have their old values again when the next update begins.",
        "{left} of the change that an update has made is left when the next one begins: code "
        "between them writes the old weights back, as load_state_dict() of a copy, or an average "
        "that is swapped in for an evaluation and not swapped back; right only where each step "
        "is a trial",
        ("left",),
        "warning",
        ("update_ratio", "distance_from_init"),
        share=0.02,
    ),
    fact(
        "optimizer_state_lost",
        "A continued run whose optimizer has lost its moments.",
        "the run was continued, but {kind} began without its state, at the learning rate {rate}: "
        "load what was saved, optimizer.load_state_dict() and scheduler.load_state_dict()",
        ("kind", "rate"),
        "warning",
        ("lr", "update_ratio"),
    ),
    fact(
        "rate_jump",
        "A learning rate that changes many times at once.",
        "the learning rate {does} {factor} times at once, from {old} to {new}",
        ("does", "factor", "old", "new"),
        "remark",
        ("lr", "update_ratio"),
        again=1,
        times=5.0,
    ),
    fact(
        "rate_range_test",
        "A learning rate that is multiplied by the same factor at each update.",
        "the learning rate is {factor} times as large at each update, from {begun} to {rate} so "
        "far, as in a range test: whatever else is found until it stops is a remark too",
        ("factor", "begun", "rate"),
        "remark",
        ("lr", "update_ratio"),
        times=10.0,
    ),
    fact(
        "rate_gone",
        "A learning rate that fell to nothing while the training continues.",
        "the learning rate is {rate}, where it was {peak}, and has been that small for {n} steps; "
        "if a scheduler counts epochs, call scheduler.step() once per epoch",
        ("rate", "peak", "n"),
        "warning",
        ("lr", "update_ratio"),
        share=1e-4,
        least=50,
    ),
    fact(
        "no_updates",
        "Many training forwards without any update, where there were updates before.",
        "{n} training forwards since step {last}, and no update: the loop skips the updates, as "
        "for a loss that is NaN, or evaluates without torch.no_grad()",
        ("n", "last"),
        "severe",
        least=50,
    ),
    fact(
        "unseen_updates",
        "Weights that are written again and again, without a step of an optimizer of torch.",
        "{n} training forwards and no step of an optimizer of torch.optim, but the weights have "
        "been written {writes} times: something else updates them, as in Keras or fastai, and "
        "nothing is recorded until a step ends; call run.step() after each backward pass, in Keras "
        "from a callback's on_train_batch_end()",
        ("n", "writes"),
        least=50,
        writes=10,
    ),
    fact(
        "steps_get_slower",
        "Steps that take longer and longer, without more forwards.",
        "a step takes {now} s at least, {factor} times as long as {n_rows:.0f} rows before, and "
        "longer and longer: something grows with each step, such as hooks, a list of losses with "
        "their graphs, or sequences; store loss.item(), and register hooks once",
        ("now", "factor"),
        "warning",
        ("data_wait_share", "peak_memory"),
        times=2.0,
        each=1.05,
        n_rows=150,
    ),
)
"""Names of the rules."""
