"""Facts of execution: rules without series, found while the training runs.

Their conditions are never called; `notebook_probe.run.facts` finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from notebook_probe.alerts.rule import RULES, Rule, Severity

__all__ = ["FACTS"]


def _described(about: str) -> Callable[[], None]:
    """Return the condition of a fact, which is never called: its docstring describes the fact."""

    def found_by_the_run() -> None:
        """Do nothing."""

    found_by_the_run.__doc__ = about
    return found_by_the_run


def _fact(
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


GROWTH = (
    "overflow_near",
    "exploding_gradient",
    "diverging_loss",
    "early_divergence",
    "loss_spike",
    "lr_high",
    "large_outputs",
)
"""Rules about numbers that grow until they are infinite."""


FACTS = (
    _fact(
        "not_in_optimizer",
        "Parameters with a gradient that no optimizer has, behind one that an optimizer has.",
        "{n} parameters have gradients that no optimizer applies: they hold others{also}; make "
        "the optimizer after the last change of the model, or call "
        "optimizer.add_param_group()",
        ("n", "also"),
        "severe",
        after=20,
    ),
    _fact(
        "cut_off",
        "A layer that a line of code cuts off from the loss.",
        "the layer is called and an optimizer holds it, but in {n_steps} steps no gradient has "
        "reached it: the graph is cut {where}",
        ("n_steps", "where"),
        "severe",
        ("grad_norm", "output_grad_norm"),
        after=20,
    ),
    _fact(
        "unused_output",
        "A layer that is called and trained, and whose output the loss does not use.",
        "the layer is called and an optimizer holds it, but the loss does not use its output; if "
        "it should, add it to the loss",
        ("n_steps",),
        "remark",
    ),
    _fact(
        "gradient_taken_away",
        "A layer that the loss reaches, and whose gradient is None at each update.",
        "the loss reaches it, but its gradient was gone at each of {n_steps} updates: something "
        "sets it to None after backward()",
        ("n_steps",),
        "remark",
    ),
    _fact(
        "gradients_cleared_early",
        "Updates at which no parameter has a gradient, though the loss reaches them.",
        "the loss reaches the layers, but no parameter had a gradient at any of {n_steps} updates: "
        "zero_grad() comes between backward() and step(), or step() comes before backward(); the "
        "order is zero_grad(), backward(), step()",
        ("n_steps",),
        "severe",
        ("grad_norm", "update_ratio"),
    ),
    _fact(
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
    _fact(
        "only_norms_train",
        "A network of which all but normalization layers is frozen, the head too.",
        "only normalization layers require a gradient; {n} other layers are frozen, the last one "
        "too: model.requires_grad_(True), or at least the last layer",
        ("n",),
    ),
    _fact(
        "frozen_but_moving",
        "Frozen parameters that an update changes, by a gradient from before.",
        "{n} parameters do not require a gradient, but updates still apply their last one: call "
        "optimizer.zero_grad(set_to_none=True) once after freezing",
        ("n",),
        "severe",
        ("update_ratio",),
    ),
    _fact(
        "step_without_effect",
        "A weight that an update with a gradient leaves exactly the same.",
        "updates with a gradient and a learning rate above 0 do not change the weights at all: "
        "{why}",
        ("why",),
        "warning",
        ("update_ratio", "grad_norm"),
    ),
    _fact(
        "optimizer_state_lost",
        "A continued run whose optimizer has lost its moments.",
        "the run was continued, but {kind} began without its state, at the learning rate {rate}: "
        "load what was saved, optimizer.load_state_dict() and scheduler.load_state_dict()",
        ("kind", "rate"),
        "warning",
        ("lr", "update_ratio"),
    ),
    _fact(
        "rate_jump",
        "A learning rate that changes many times at once.",
        "the learning rate {does} {factor} times at once, from {old} to {new}",
        ("does", "factor", "old", "new"),
        "remark",
        ("lr", "update_ratio"),
        again=1,
        times=5.0,
    ),
    _fact(
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
    _fact(
        "no_updates",
        "Many training forwards without any update, where there were updates before.",
        "{n} training forwards since step {last}, and no update: the loop skips the updates, as "
        "for a loss that is NaN, or evaluates without torch.no_grad()",
        ("n", "last"),
        "severe",
        least=50,
    ),
    _fact(
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
    _fact(
        "nonfinite_batch",
        "A batch with numbers that are NaN or infinite, and a loss that is so, too.",
        "{share} of the numbers that the model is given are NaN or infinite: remove or replace "
        "them in the data, as with torch.nan_to_num(inputs)",
        ("share",),
        "severe",
    ),
    _fact(
        "nonfinite_update",
        "Weights that an update has made NaN or infinite after a loss that was finite.",
        "{n} of the {n_layers} layers with parameters have some that are NaN or infinite since the "
        "update of step {before}, whose loss was finite, and no layer behind this one has: the "
        "backward pass, the size of the update or other code made them; "
        "torch.autograd.set_detect_anomaly(True) names an operation of the backward pass",
        ("n", "n_layers", "before"),
        "severe",
        ("grad_norm", "grad_nonfinite_fraction", "output_grad_nonfinite_fraction"),
        consequence_of=GROWTH,
    ),
    _fact(
        "nonfinite_from_loss",
        "A loss that is NaN or infinite though all modules return finite numbers.",
        "the loss is {loss}, though all outputs of {n} modules are finite when the model is called "
        "again, the last ones up to {largest}: the loss function makes it, of numbers that are too "
        "large, or as log(0), a division by 0 or the root of a number below 0; use a loss that "
        "takes logits, or add a small number",
        ("loss", "n", "largest"),
        "severe",
        consequence_of=GROWTH,
    ),
    _fact(
        "nonfinite_not_located",
        "A loss that is NaN or infinite and whose origin could not be found.",
        "the loss is {loss}; the module where it began is unknown: {why}",
        ("loss", "why"),
        "remark",
    ),
    _fact(
        "activation_before_loss",
        "A softmax or sigmoid before a loss that has its own.",
        "{what}: the activation is applied twice; return logits from the model",
        ("what",),
    ),
    _fact(
        "no_log_before_nll",
        "A likelihood of numbers that are no log-probabilities.",
        "nll_loss takes log-probabilities, and gets {what}: call F.cross_entropy(logits, targets)",
        ("what",),
        "severe",
    ),
    _fact(
        "negated_loss",
        "The negative of a loss that is never below 0.",
        "the loss is the negative of one that is never below 0: training makes it worse without "
        "an end; remove the minus sign",
        severity="severe",
    ),
    _fact(
        "broadcast_loss",
        "A difference of shapes (N, 1) and (N,), which is a table of all pairs.",
        "a difference of {given} and {other} is broadcast to {made}: each output is compared with "
        "all targets; targets = targets.view_as(output)",
        ("given", "other", "made"),
        "severe",
    ),
    _fact(
        "unregistered_layers",
        "Layers in a plain list, tuple or dict, which no optimizer can find.",
        "the loss depends on {n} parameters of {kind} in {owner}, a plain container that the model "
        "does not register: {owner} = nn.ModuleList(...)",
        ("n", "kind", "owner"),
        "severe",
    ),
    _fact(
        "layers_made_in_forward",
        "Layers that are made again in each forward.",
        "the loss depends on parameters of shape {shape} that are made again in each forward: make "
        "the layer once, in __init__",
        ("shape",),
    ),
    _fact(
        "loss_at_chance",
        "A cross entropy that stays at the loss of guessing.",
        "the loss has been {loss} since step {first}, the loss of guessing among {n_classes} "
        "classes, {guess}: the outputs say nothing of the targets; check that inputs and targets "
        "belong together, that the input reaches the output, and the learning rate",
        ("loss", "first", "n_classes", "guess"),
        consequence_of=("gradients_cleared_early", "equal_units", "constant_outputs"),
        rows=30,
        span=200,
    ),
    _fact(
        "repeated_batch",
        "One batch in each of the first steps.",
        "the model has been given the same batch in each step since the first: fine for "
        "full-batch training, or where one batch is to be learned by heart; else look for "
        "next(iter(loader)), which starts the loader again each time, and call "
        "batches = iter(loader) once, before the loop",
        (),
        "remark",
    ),
    _fact(
        "collapsed_batch",
        "Batches whose rows are all equal.",
        "all {n} rows of each batch are equal: the model learns from one sample at a time; look "
        "for data[0], expand() or repeat() where batches are made",
        ("n",),
    ),
    _fact(
        "tiny_inputs",
        "Inputs so small that the biases of the first layer outweigh them.",
        "no input is larger than {largest}, where about 1 is usual, so that the outputs hardly "
        "depend on them: x = (x - mean) / std, and divide images by 255 only once",
        ("largest",),
        "warning",
        ("silent_input_fraction", "output_std"),
        below=0.005,
    ),
    _fact(
        "dropout_in_evaluation",
        "Dropout by a function that stays on in evaluation mode.",
        "{name} at {place} drops {share} of the numbers in evaluation mode, so that outputs are "
        "random: pass training=self.training, and dropout_p=0.0 where the model evaluates",
        ("name", "place", "share"),
    ),
    _fact(
        "autocast_ignored",
        "Layers that compute in another type than autocast gives.",
        "autocast has no effect here: {why}",
        ("why",),
    ),
    _fact(
        "targets_out_of_range",
        "Targets that the last activation, or the loss, cannot reach.",
        "{name} is made for numbers in its range, and {outside} of the targets are outside: they "
        "go from {lowest} to {highest}; remove the last activation, or scale the targets to its "
        "range",
        ("name", "outside", "lowest", "highest"),
        share=0.05,
    ),
    _fact(
        "targets_out_of_scale",
        "Targets much larger or smaller than the outputs of the network in its first step.",
        "the targets are of size {size}, the first outputs of size {given}: scale the targets, "
        "y = (y - mean) / std, and undo it after the model",
        ("size", "given"),
        "remark",
        ("output_std", "update_ratio"),
        times=100.0,
    ),
    _fact(
        "no_better_than_constant",
        "Outputs that explain nothing of the targets.",
        "since step {first} the loss is no lower than with the best constant output, {kind}: in "
        "{n} batches the outputs explain nothing of the targets; check that inputs and targets "
        "belong together and have about the same scale, and the learning rate",
        ("kind", "first", "n"),
        "remark",
        span=200,
    ),
    _fact(
        "batchnorm_momentum",
        "A momentum with which running statistics hardly follow, or forget all but one batch.",
        "the momentum is {momentum}, and {why}; the default is momentum=0.1",
        ("momentum", "why"),
        "warning",
        ("bn_mean_tid", "bn_var_tid"),
        slow=0.003,
        fast=0.6,
    ),
    _fact(
        "ranks_differ",
        "Weights, learning rates or types that are not the same on all ranks of a job.",
        "ranks {ranks} should be equal and are not: {what}",
        ("ranks", "what"),
        "severe",
        ("grad_norm", "clip_coefficient", "lr"),
    ),
    _fact(
        "rank_stands_still",
        "A rank that is behind the others and no longer moves.",
        "rank {rank} is at step {its_step} and {what}",
        ("rank", "its_step", "what"),
        "severe",
        seconds=60.0,
    ),
    _fact(
        "runaway_loss",
        "A loss below 0 that falls faster and faster, as nothing bounds it.",
        "the loss has fallen from {first} to {now}, faster and faster, so that it has no floor: "
        "look for a wrong sign, or bound what grows, as by a squared difference or a penalty",
        ("first", "now"),
        "warning",
        ("weight_norm", "output_std"),
        consequence_of=("negated_loss", "no_log_before_nll", "targets_out_of_range"),
        rows=60,
        times=100.0,
        faster=1.15,
    ),
    _fact(
        "constant_outputs",
        "Outputs that are the same for all rows of a batch whose rows differ.",
        "the outputs are exactly the same for all {n} rows of each batch, though the inputs "
        "differ: the input does not reach the output; look for units that are all off, a mean over "
        "the batch instead of features, or an input that forward() does not use",
        ("n",),
        "warning",
        ("dead_fraction", "zero_fraction", "effective_rank"),
        consequence_of=("large_outputs", "equal_units", "dead_units", "silent_inputs"),
    ),
    _fact(
        "hooks_pile_up",
        "Modules that have more hooks at each step.",
        "there are {n} hooks, and more with each step, so that steps get slower: call "
        "register_forward_hook() once, before the loop, or handle.remove() after each use",
        ("n",),
        "warning",
        ("step_time",),
        steps_in_a_row=10.0,
    ),
    _fact(
        "rate_falls_each_step",
        "A schedule for epochs that is counted in steps.",
        "the learning rate is multiplied by {factor} {when}, and is {rate} after {n} updates, "
        "where it was {peak}: call scheduler.step() once per epoch, not per batch",
        ("factor", "when", "rate", "n", "peak"),
        "warning",
        ("lr", "update_ratio"),
        most=0.91,
        times=3.0,
    ),
)
"""Names of the rules."""
