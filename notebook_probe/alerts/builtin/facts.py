"""Facts of execution: rules without series, found while the training runs.

Their conditions are never called; `notebook_probe.run.facts` finds them.
"""

from __future__ import annotations

from notebook_probe.alerts.builtin.facts_of_updates import FACTS_OF_UPDATES, fact

__all__ = ["FACTS"]

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
    *FACTS_OF_UPDATES,
    fact(
        "nonfinite_batch",
        "A batch with numbers that are NaN or infinite, and a loss that is so, too.",
        "{share} of the numbers that the model is given are NaN or infinite: remove or replace "
        "them in the data, as with torch.nan_to_num(inputs)",
        ("share",),
        "severe",
    ),
    fact(
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
    fact(
        "nonfinite_from_loss",
        "A loss that is NaN or infinite though all modules return finite numbers.",
        "the loss is {loss}, though all outputs of {n} modules are finite when the model is called "
        "again, the last ones up to {largest}: the loss function makes it, of numbers that are too "
        "large, or as log(0), a division by 0 or the root of a number below 0; use a loss that "
        "takes logits, or add a small number",
        ("loss", "n", "largest"),
        "severe",
        consequence_of=("no_log_before_nll", *GROWTH),
    ),
    fact(
        "nonfinite_not_located",
        "A loss that is NaN or infinite and whose origin could not be found.",
        "the loss is {loss}; the module where it began is unknown: {why}",
        ("loss", "why"),
        "remark",
    ),
    fact(
        "activation_before_loss",
        "A softmax, sigmoid or ReLU before a loss that takes logits.",
        "{what}: remove the last activation, and return logits from the model",
        ("what",),
    ),
    fact(
        "no_log_before_nll",
        "A likelihood or divergence of numbers that are no log-probabilities.",
        "{loss} takes {wanted}, and gets {what}: {mend}",
        ("loss", "wanted", "what", "mend"),
        "severe",
    ),
    fact(
        "softmax_dimension",
        "A softmax over the samples, or over places, where one over classes or keys is needed.",
        "the softmax of shape {shape} that {taker} takes sums to one over {over}, {but}: pass "
        "dim={dim}",
        ("shape", "taker", "over", "but", "dim"),
        "severe",
    ),
    fact(
        "negated_loss",
        "The negative of a loss that is never below 0.",
        "the loss is the negative of one that is never below 0: training makes it worse without "
        "an end; remove the minus sign",
        severity="severe",
    ),
    fact(
        "broadcast_loss",
        "A difference of shapes (N, 1) and (N,), which is a table of all pairs.",
        "a difference of {given} and {other} is broadcast to {made}: each output is compared with "
        "all targets; targets = targets.view_as(output)",
        ("given", "other", "made"),
        "severe",
    ),
    fact(
        "unregistered_layers",
        "Layers in a plain list, tuple or dict, which no optimizer can find.",
        "the loss depends on {n} parameters of {kind} in {owner}, a plain container that the model "
        "does not register: {owner} = nn.ModuleList(...)",
        ("n", "kind", "owner"),
        "severe",
    ),
    fact(
        "layers_made_in_forward",
        "Layers that are made again in each forward.",
        "the loss depends on parameters of shape {shape} that are made again in each forward: make "
        "the layer once, in __init__",
        ("shape",),
    ),
    fact(
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
    fact(
        "all_targets_ignored",
        "A cross entropy that is NaN, as it leaves out all of its targets.",
        "the loss is the mean of 0 targets, NaN, since all of them are ignore_index: look at what "
        "makes or masks the labels, and skip a batch without any",
        severity="severe",
    ),
    fact(
        "targets_shifted",
        "Targets of tokens that are the inputs themselves, or the tokens after the next ones.",
        "each target is {what}{mend}",
        ("what", "mend"),
        "remark",
        ("output_std",),
    ),
    fact(
        "padding_counted",
        "Padding that a cross entropy counts, as ignore_index is another number.",
        "{share} of the targets are {value}, at the {side} of rows of different length and nowhere "
        "else: padding, which the loss counts; F.cross_entropy(..., ignore_index={value}), or "
        "labels of -100",
        ("share", "value", "side"),
        "remark",
        ("output_std",),
        share=0.2,
    ),
    fact(
        "class_ignored",
        "A class that a cross entropy leaves out, though the model has an output for it.",
        "{share} of the samples are of class {value}, and ignore_index={value} leaves them out, so "
        "that the model never learns this class: leave out ignore_index, unless {value} marks "
        "labels that are unknown, for which -100 is usual",
        ("share", "value"),
        "remark",
        ("output_std",),
    ),
    fact(
        "backward_twice",
        "A second backward pass on one loss, whose gradients are added to those of the first.",
        "backward() was called again on the same loss before its gradients were cleared, so that "
        "they are twice as large: remove one of both calls",
        (),
        "warning",
        ("grad_norm", "update_ratio"),
    ),
    fact(
        "dropout_before_loss",
        "Dropout behind the last layer.",
        "dropout sets some of the outputs that the loss takes to 0: remove it behind the last "
        "layer, or put it in front of that layer",
    ),
    fact(
        "sorted_batches",
        "Batches that are each of one class.",
        "each of {n} batches that were read has targets of one class alone, and not all of the "
        "same: the data seem to be sorted; DataLoader(..., shuffle=True)",
        ("n",),
        "remark",
        ("output_std", "bn_mean_tid"),
    ),
    fact(
        "triplet_order",
        "A triplet loss whose distances are in the wrong order, or equal.",
        "{what} {how} the one that is to be large, {small} and {large}: check that anchor, "
        "positive and negative are passed in this order, and that the first two are of one kind; "
        "where the hardest triplets were chosen beforehand this may be right",
        ("what", "how", "small", "large"),
        "remark",
        ("output_std", "effective_rank"),
        deviations=5.0,
        share=0.05,
        span=200,
    ),
    fact(
        "repeated_batch",
        "One batch in each of the first steps.",
        "the first {n} steps were given the same batch: fine for full-batch training, for several "
        "epochs over one rollout, or where one batch is to be learned by heart; else look for "
        "next(iter(loader)), which starts the loader again each time, and call "
        "batches = iter(loader) once, before the loop, and for workers that draw the same numbers",
        ("n",),
        "remark",
    ),
    fact(
        "collapsed_batch",
        "Batches whose rows are all equal.",
        "all {n} rows of each batch are equal: the model learns from one sample at a time; look "
        "for data[0], expand() or repeat() where batches are made",
        ("n",),
    ),
    fact(
        "tiny_inputs",
        "Inputs so small that the biases of the first layer outweigh them.",
        "no input is larger than {largest}, where about 1 is usual, so that the outputs hardly "
        "depend on them: x = (x - mean) / std, and divide images by 255 only once",
        ("largest",),
        "warning",
        ("silent_input_fraction", "output_std"),
        below=0.005,
    ),
    fact(
        "dropout_in_evaluation",
        "Dropout by a function that stays on in evaluation mode.",
        "{name} at {place} drops {share} of the numbers in evaluation mode, so that outputs are "
        "random: pass training=self.training, and dropout_p=0.0 where the model evaluates",
        ("name", "place", "share"),
    ),
    fact(
        "random_evaluation",
        "Evaluations of one batch, with the same weights, whose outputs differ.",
        "two evaluations of the same batch with the same weights differ by {off}: "
        "{where} draws random numbers; do so only if self.training, unless samples are wanted, as "
        "of a variational model",
        ("off", "where"),
        "remark",
        ("output_std",),
        share=1e-3,
    ),
    fact(
        "unsettled_spectral_norm",
        "An evaluation before the first training call of a layer with a spectral norm.",
        "the evaluation divides the weight by {used}, and its spectral norm is {found} or more: "
        "spectral_norm estimates it in training calls only; call the model once in training mode "
        "before, or use torch.nn.utils.parametrizations.spectral_norm",
        ("used", "found"),
        "warning",
        ("weight_norm", "output_std"),
    ),
    fact(
        "affine_network",
        "Linear layers with nothing between them, none of them narrow.",
        "the loss takes {n} linear layers one after the other, without an activation between "
        "them: they compute what one could; add an activation such as nn.ReLU() after each but "
        "the last",
        ("n",),
        "remark",
        ("output_std", "weight_norm"),
    ),
    fact(
        "constant_targets",
        "A cross entropy near 0 of targets that are all of one class.",
        "all targets of the {n} batches that were read are class {value}, and the loss is "
        "{loss}: the labels may be lost, as by a division of integers or a wrong column; "
        "print(targets.unique())",
        ("n", "value", "loss"),
        "warning",
        ("output_std",),
        share=0.1,
    ),
    fact(
        "autocast_ignored",
        "Layers that compute in another type than autocast gives.",
        "autocast has no effect here: {why}",
        ("why",),
    ),
    fact(
        "targets_out_of_range",
        "Targets that the last activation, or the loss, cannot reach.",
        "{name} is made for numbers in its range, and {outside} of the targets are outside: they "
        "go from {lowest} to {highest}; remove the last activation, or scale the targets to its "
        "range",
        ("name", "outside", "lowest", "highest"),
        share=0.05,
    ),
    fact(
        "targets_out_of_scale",
        "Targets much larger or smaller than the outputs of the network in its first step.",
        "the targets are of size {size}, the first outputs of size {given}: scale the targets, "
        "y = (y - mean) / std, and undo it after the model",
        ("size", "given"),
        "remark",
        ("output_std", "update_ratio"),
        times=100.0,
    ),
    fact(
        "no_better_than_constant",
        "Outputs that explain nothing of the targets.",
        "since step {first} the loss is no lower than with the best constant output, {kind}: in "
        "{n} batches the outputs explain nothing of the targets; check that inputs and targets "
        "belong together and have about the same scale, and the learning rate",
        ("kind", "first", "n"),
        "remark",
        span=200,
    ),
    fact(
        "batchnorm_momentum",
        "A momentum with which running statistics hardly follow, or forget all but one batch.",
        "the momentum is {momentum}, and {why}; the default is momentum=0.1",
        ("momentum", "why"),
        "warning",
        ("bn_mean_tid", "bn_var_tid"),
        slow=0.003,
        fast=0.6,
    ),
    fact(
        "ranks_differ",
        "Weights, learning rates or types that are not the same on all ranks of a job.",
        "ranks {ranks} should be equal and are not: {what}",
        ("ranks", "what"),
        "severe",
        ("grad_norm", "clip_coefficient", "lr"),
    ),
    fact(
        "rank_stands_still",
        "A rank that is behind the others and no longer moves.",
        "rank {rank} is at step {its_step} and {what}",
        ("rank", "its_step", "what"),
        "severe",
        seconds=60.0,
    ),
    fact(
        "ranks_wait",
        "Ranks that wait for each other, each in another collective.",
        "all ranks have been in this step for {seconds} s, and wait in collectives that do not "
        "belong together: {where}; call the same ones on each rank, in the same order and with the "
        "same shapes",
        ("where",),
        "severe",
        seconds=60.0,
    ),
    fact(
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
    fact(
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
    fact(
        "hooks_pile_up",
        "Modules that have more hooks at each step.",
        "there are {n} hooks, and more with each step, so that steps get slower: call "
        "register_forward_hook() once, before the loop, or handle.remove() after each use",
        ("n",),
        "warning",
        ("step_time",),
        steps_in_a_row=10.0,
    ),
    fact(
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
