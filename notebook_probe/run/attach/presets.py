"""Presets: what to measure, where and how often, under one name for ``watch(probes=...)``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from notebook_probe.errors import QuantityError, UnknownNameError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import attention_places
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities import Quantity, as_quantity, quantities
from notebook_probe.quantities.table import built_in
from notebook_probe.run.attach.bypassed import is_never_fed
from notebook_probe.run.attach.default_places import (
    attention_modules,
    layers_of_several_inputs,
    layers_of_vectors,
    layers_that_keep_directions,
    model_on_cuda,
    relu_modules,
    root,
)
from notebook_probe.run.attach.preset import Preset, PresetRow, presets
from notebook_probe.run.attach.request import ResolvedRequest, misfit, resolve
from notebook_probe.schedules import schedule
from notebook_probe.schedules.arming import can_foresee
from notebook_probe.schedules.protocols import Schedule

__all__ = ["DEFAULT", "Preset", "PresetRow", "presets", "resolve_presets"]


DEFAULT = (
    "weight_norm",
    "grad_norm",
    "update_ratio",
    "output_mean",
    "output_std",
    "output_norm",
    "output_grad_norm",
    "zero_fraction",
    "nonfinite_fraction",
)
"""Quantities of the default probes, at every weighted or activation module."""

RANKS = "steps(0, 10, 20) | every(25, 50)"
"""Schedule of expensive quantities: rare, but early enough to show a wrong initialization."""

COMPARED_STEPS = 1000
"""Number of steps over which schedules are compared for frequency."""


def _add(name: str, about: str, *rows: PresetRow) -> None:
    presets.add(name, Preset(name, about, rows))


_add(
    "default",
    "Norms, moments and silent units.",
    PresetRow(DEFAULT),
    PresetRow(("grad_rms",), schedule="every(5)"),
    PresetRow(("silent_input_fraction",), layers_of_several_inputs, "every(10)"),
)
_add(
    "gradients",
    "Whether gradients vanish, explode or swing, of the parameters and between the layers.",
    PresetRow(("grad_norm", "grad_rms", "grad_abs_max", "grad_zero_fraction", "grad_cosine")),
    PresetRow(("output_grad_norm", "output_grad_rms", "output_grad_abs_max")),
    PresetRow(("grad_norm", "grad_depth_slope", "clip_coefficient"), root),
    PresetRow(("gradient_noise_scale",), root, "every(10)"),
)
_add(
    "activations",
    "How large activations are, and which units are silent or dead.",
    PresetRow(("output_mean", "output_std", "output_rms", "output_abs_max", "input_std")),
    PresetRow(("zero_fraction", "dormant_fraction", "saturated_fraction", "nonfinite_fraction")),
    PresetRow(("output_quantiles", "distribution_shift"), schedule="every(10)"),
    PresetRow(("dead_fraction", "output_histogram"), schedule="every(50)"),
)
_add(
    "spectra",
    "How many directions inputs use, every ten steps, outputs every fifty, weights every hundred.",
    PresetRow(
        ("input_cov_max_eig", "input_cov_stable_rank", "input_cov_condition_50"),
        layers_of_vectors,
        "every(10)",
    ),
    PresetRow(("effective_rank", "participation_ratio"), schedule="every(50)"),
    PresetRow(("spectral_norm", "weight_stable_rank"), schedule="every(100)"),
)
_add(
    "batchnorm",
    "What BatchNorm sees in training against what it uses in evaluation, every ten steps.",
    PresetRow(("bn_mean_tid", "bn_var_tid"), schedule="every(10)"),
)
_add(
    "attention",
    "Whether attention collapses or saturates, at every attention module, every ten steps.",
    PresetRow(
        (
            "attn_entropy",
            "attn_entropy_min",
            "attn_entropy_share",
            "attn_max_logit",
            "attn_sink_share",
            "attn_head_entropy",
        ),
        attention_modules,
        "every(10)",
    ),
)
_add(
    "curvature",
    "How sharp the loss is, and how far features have come, on `Run.probe_batch`'s batch.",
    PresetRow(("sharpness", "sam_sharpness"), root, "every(100)"),
    PresetRow(("feature_drift", "cka_to_reference"), schedule="every(100)"),
)
_add(
    "precision",
    "How near to overflow and underflow numbers come, for training in half precision.",
    PresetRow(("range_headroom_bits", "underflow_fraction", "nonfinite_fraction")),
    PresetRow(("output_grad_headroom_bits", "output_grad_underflow_fraction")),
    PresetRow(("weight_abs_max", "weight_nonfinite_fraction")),
    PresetRow(("grad_abs_max", "grad_nonfinite_fraction")),
    PresetRow(("grad_underflow_fraction",), schedule="every(10)"),
    PresetRow(("amp_scale", "amp_skipped"), root),
)
_add(
    "optimizer",
    "What the optimizer does to the weights, and where it has taken them.",
    PresetRow(("weight_norm", "grad_norm", "update_norm", "update_ratio", "log_step_size")),
    PresetRow(("lr", "weight_decay", "momentum", "log_step_size"), root),
    PresetRow(("sign_flips", "distance_from_init", "layer_rotation"), schedule="every(10)"),
    PresetRow(("update_cosine", "adam_update_rms", "moment_ratio"), schedule="every(10)"),
    PresetRow(("effective_lr_quantiles", "grad_below_eps_fraction"), schedule="every(10)"),
)
_add(
    "alerts",
    "Quantities that the alert rules read; the loss is logged by the loop.",
    PresetRow(("grad_norm", "grad_rms", "grad_cosine", "adam_update_rms")),
    PresetRow(("weight_norm", "update_ratio", "nonfinite_fraction", "range_headroom_bits")),
    PresetRow(("bn_mean_tid", "bn_var_tid"), schedule="every(5)"),
    PresetRow(("silent_input_fraction",), layers_of_several_inputs, "every(10)"),
    PresetRow(("output_std",), schedule="steps(0)"),
    PresetRow(("effective_rank", "effective_rank_share"), layers_that_keep_directions, RANKS),
    PresetRow(("dead_fraction",), relu_modules, "every(10)"),
    PresetRow(("attn_entropy_share", "attn_narrowest_head"), attention_places, "every(10)"),
    PresetRow(("attn_max_logit", "attn_max_logit_head"), attention_places, "every(10)"),
    PresetRow(("grad_depth_slope", "clip_coefficient", "data_wait_share", "step_time"), root),
)
_add(
    "step",
    "How the logged loss moves, and where the time and the memory of a step go.",
    PresetRow(("loss_ema", "loss_spike_score", "train_eval_gap"), root),
    PresetRow(("step_time", "samples_per_second", "data_wait_share", "peak_memory"), root),
)
_add(
    "system",
    "How busy the device or the processor is, the memory in use, power, and the time of a step.",
    PresetRow(("device_utilization", "device_memory", "peak_memory"), root, "every(10)"),
    PresetRow(("device_power",), model_on_cuda, "every(10)"),
    PresetRow(("step_time", "data_wait_share"), root),
)


def _without_extra_passes() -> tuple[Quantity, ...]:
    return tuple(q for q in built_in() if q.cost not in ("forward", "backward"))


def _everything() -> tuple[PresetRow, ...]:
    """Return all rows; targets belong to the model's output and are useless elsewhere."""
    every = _without_extra_passes()
    within = tuple(quantity.name for quantity in every if not quantity.is_of_batch)
    return (
        PresetRow(within, schedule="every(10)"),
        PresetRow(tuple(quantity.name for quantity in every), root, "every(10)"),
    )


_add(
    "everything",
    "All that is built in and needs no additional pass, wherever it fits, every ten steps.",
    *_everything(),
)


def resolve_presets(model_map: ModelMap, probes: Any) -> ResolvedRequest:
    """Resolve the ``probes`` argument of watch: None, a preset, several, or Taiyi's dict.

    A quantity of two presets is measured on the schedule that is due more often; on the first of
    two that cannot be compared beforehand.

    Raises
    ------
    UnknownNameError
        No preset of this name; the message lists the close ones.
    QuantityError
        Something else.
    """
    if probes is None:
        return ResolvedRequest((), ())
    if isinstance(probes, Mapping):
        return resolve(model_map, probes, None, None)
    given = [probes] if isinstance(probes, str | Preset) else probes
    if not isinstance(given, list | tuple) or not all(isinstance(p, str | Preset) for p in given):
        raise QuantityError(
            f"probes={probes!r}; allowed: None, a dict of selections, or one or several of "
            f"{', '.join(presets)}"
        )
    chosen = [_named(one) if isinstance(one, str) else one for one in given]
    rows = [row for preset in chosen for row in preset.rows]

    @cache  # a preset names few schedules, and only of what two rows measure one is compared
    def often(i: int) -> int:
        return _n_due(schedule(rows[i].schedule))

    wanted: dict[tuple[str, str], tuple[int, Probe]] = {}
    for i, row in enumerate(rows):
        for probe in _fitting(model_map, row):
            before, _ = wanted.setdefault((probe.place, probe.variable), (i, probe))
            # An unknown frequency (0) is never replaced: nothing says which of both is due more
            # often.
            if before != i and often(i) > often(before) > 0:
                wanted[probe.place, probe.variable] = i, probe
    return ResolvedRequest(tuple(probe for _, probe in wanted.values()), ())


def _n_due(one: Schedule) -> int:
    """Count the due steps among the first ones; 0 if that is unknown beforehand."""
    if not can_foresee(one):
        return 0
    due, step = 0, one.next_due(0)
    while step is not None and step < COMPARED_STEPS:
        due, step = due + 1, one.next_due(step + 1)
    return due


def _named(name: str) -> Preset:
    if name not in presets and name in quantities:
        raise UnknownNameError(
            f"{name!r} is a quantity and no preset; probes={{'*': [{name!r}]}} measures it "
            f"wherever it fits"
        )
    return presets[name]


def _fitting(model_map: ModelMap, row: PresetRow) -> list[Probe]:
    due = schedule(row.schedule)
    chosen = [as_quantity(name) for name in row.names]
    # A preset is for any model, so that what does not fit is left out silently.
    return [
        Probe(place, quantity, due, may_stretch=True, of_preset=True)
        for place in row.places(model_map)
        for quantity in chosen
        if not misfit(model_map, place, quantity) and not is_never_fed(model_map, place, quantity)
    ]
