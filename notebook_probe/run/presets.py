"""Presets: what to measure, where and how often, under one name for ``watch(probes=...)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import nn

from notebook_probe.errors import QuantityError
from notebook_probe.probes.probe import Probe
from notebook_probe.probes.selectors import attention_places, default_places
from notebook_probe.quantities import Quantity, as_quantity
from notebook_probe.quantities.table import built_in
from notebook_probe.registry import Registry
from notebook_probe.run.attach import Asked, misfit, modules_by_path, read_asked
from notebook_probe.run.usual import attending, whole
from notebook_probe.schedules import schedule

__all__ = ["DEFAULT", "Preset", "Row", "presets", "read_presets"]

Places: TypeAlias = Callable[[nn.Module], Sequence[str]]


def rectified(model: nn.Module) -> tuple[str, ...]:
    """The activations whose units can die."""
    return tuple(
        path
        for path, module in modules_by_path(model).items()
        if isinstance(module, nn.ReLU | nn.ReLU6)
    )


@dataclass(frozen=True, slots=True)
class Row:
    """Some quantities, at the places where they fit."""

    names: tuple[str, ...]
    places: Places = default_places
    """Every weighted or activation module, if nothing else is said."""
    schedule: str = "every(1)"


@dataclass(frozen=True, slots=True)
class Preset:
    """What is attached together, and what it is good for and costs."""

    about: str
    rows: tuple[Row, ...]


presets: Registry[Preset] = Registry("preset")
"""Every preset by name; `presets.add` adds one of your own."""

COSTS: dict[str, dict[str, float]] = {
    "default": {"an MLP": 19, "a ResNet-18": 8, "a small GPT": 7},
    "gradients": {"an MLP": 19, "a ResNet-18": 5, "a small GPT": 6},
    "activations": {"an MLP": 34, "a ResNet-18": 13, "a small GPT": 20},
    "spectra": {"an MLP": 42, "a ResNet-18": 10, "a small GPT": 43},
    "batchnorm": {"a ResNet-18": 3},
    "attention": {"a small GPT": 1},
    "curvature": {},
    "precision": {"an MLP": 41, "a ResNet-18": 25, "a small GPT": 27},
    "optimizer": {"an MLP": 36, "a ResNet-18": 8, "a small GPT": 7},
    "alerts": {"an MLP": 39, "a ResNet-18": 16, "a small GPT": 34},
    "step": {"an MLP": 3, "a ResNet-18": 0.1, "a small GPT": 0.1},
    "everything": {"an MLP": 83, "a ResNet-18": 55, "a small GPT": 77},
}
"""Per cent of a training step, as ``python -m benchmarks quantities`` measures it, by preset and
workload; nothing where none of them has what the preset needs."""

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
"""What the default probes measure at every weighted or activation module."""

presets.add("default", Preset("Norms, moments and silent units.", (Row(DEFAULT),)))
presets.add(
    "gradients",
    Preset(
        "Whether gradients vanish, explode or swing, of the parameters and between the layers.",
        (
            Row(("grad_norm", "grad_rms", "grad_abs_max", "grad_zero_fraction", "grad_cosine")),
            Row(("output_grad_norm", "output_grad_rms", "output_grad_abs_max")),
            Row(("grad_norm", "grad_depth_slope", "clip_coefficient"), whole),
            Row(("gradient_noise_scale",), whole, "every(10)"),
        ),
    ),
)
presets.add(
    "activations",
    Preset(
        "How large activations are, and which units are silent or dead.",
        (
            Row(("output_mean", "output_std", "output_rms", "output_abs_max", "input_std")),
            Row(("zero_fraction", "dormant_fraction", "saturated_fraction", "nonfinite_fraction")),
            Row(("output_quantiles", "distribution_shift"), schedule="every(10)"),
            Row(("dead_fraction", "output_histogram"), schedule="every(50)"),
        ),
    ),
)
presets.add(
    "spectra",
    Preset(
        "How many directions inputs and outputs use, every ten steps; weights, every hundred.",
        (
            Row(
                (
                    "input_cov_max_eig",
                    "input_cov_stable_rank",
                    "input_cov_condition_50",
                    "effective_rank",
                    "participation_ratio",
                ),
                schedule="every(10)",
            ),
            Row(("spectral_norm", "weight_stable_rank"), schedule="every(100)"),
        ),
    ),
)
presets.add(
    "batchnorm",
    Preset(
        "What BatchNorm sees in training against what it uses in evaluation, every ten steps.",
        (Row(("bn_mean_tid", "bn_var_tid"), schedule="every(10)"),),
    ),
)
presets.add(
    "attention",
    Preset(
        "Whether attention collapses or saturates, at every attention module, every ten steps.",
        (
            Row(
                (
                    "attn_entropy",
                    "attn_entropy_min",
                    "attn_entropy_share",
                    "attn_max_logit",
                    "attn_sink_share",
                    "attn_head_entropy",
                ),
                attending,
                "every(10)",
            ),
        ),
    ),
)
presets.add(
    "curvature",
    Preset(
        "How sharp the loss is, and how far features have come, on `Run.probe_batch`'s batch.",
        (
            Row(("sharpness", "sam_sharpness"), whole, "every(100)"),
            Row(("feature_drift", "cka_to_reference"), schedule="every(100)"),
        ),
    ),
)
presets.add(
    "precision",
    Preset(
        "How near to overflow and underflow numbers come, for training in half precision.",
        (
            Row(("range_headroom_bits", "underflow_fraction", "nonfinite_fraction")),
            Row(("output_grad_headroom_bits", "output_grad_underflow_fraction")),
            Row(("weight_abs_max", "weight_nonfinite_fraction")),
            Row(("grad_abs_max", "grad_nonfinite_fraction")),
            Row(("grad_underflow_fraction",), schedule="every(10)"),
            Row(("amp_scale", "amp_skipped"), whole),
        ),
    ),
)
presets.add(
    "optimizer",
    Preset(
        "What the optimizer does to the weights, and where it has taken them.",
        (
            Row(("weight_norm", "grad_norm", "update_norm", "update_ratio", "log_step_size")),
            Row(("lr", "weight_decay", "momentum", "log_step_size"), whole),
            Row(("sign_flips", "distance_from_init", "layer_rotation"), schedule="every(10)"),
            Row(("update_cosine", "adam_update_rms", "moment_ratio"), schedule="every(10)"),
            Row(("effective_lr_quantiles", "grad_below_eps_fraction"), schedule="every(10)"),
        ),
    ),
)
presets.add(
    "alerts",
    Preset(
        "What the alert rules look at, beside the loss, which the loop logs.",
        (
            Row(("grad_norm", "grad_rms", "grad_cosine", "update_ratio", "adam_update_rms")),
            Row(("nonfinite_fraction", "range_headroom_bits")),
            Row(("effective_rank_share", "bn_mean_tid"), schedule="every(10)"),
            Row(("dead_fraction",), rectified, "every(10)"),
            Row(("attn_entropy_share", "attn_max_logit"), attention_places, "every(10)"),
            Row(
                ("grad_depth_slope", "clip_coefficient", "loss_spike_score", "data_wait_share"),
                whole,
            ),
        ),
    ),
)
presets.add(
    "step",
    Preset(
        "How the logged loss moves, and where the time and the memory of a step go.",
        (
            Row(("loss_ema", "loss_spike_score", "train_eval_gap"), whole),
            Row(("step_time", "samples_per_second", "data_wait_share", "peak_memory"), whole),
        ),
    ),
)


def _without_extra_passes() -> tuple[Quantity, ...]:
    return tuple(q for q in built_in() if q.cost not in ("forward", "backward"))


def _everything() -> tuple[Row, ...]:
    """Targets are those of the model's output: within it they would be compared with nothing."""
    every = _without_extra_passes()
    within = tuple(quantity.name for quantity in every if not quantity.is_of_batch)
    return (
        Row(within, schedule="every(10)"),
        Row(tuple(quantity.name for quantity in every), whole, "every(10)"),
    )


presets.add(
    "everything",
    Preset(
        "All that is built in and needs no pass of its own, wherever it fits, every ten steps.",
        _everything(),
    ),
)


def read_presets(model: nn.Module, probes: Any) -> Asked:
    """Read the ``probes`` argument of watch: None, a preset, several, or Taiyi's dict.

    What two presets share is measured on the schedule of the first.

    Raises
    ------
    UnknownNameError
        No preset of this name; the message lists the close ones.
    QuantityError
        Something else.
    """
    if probes is None:
        return Asked((), ())
    if isinstance(probes, Mapping):
        return read_asked(model, probes, None, None)
    names = [probes] if isinstance(probes, str) else probes
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise QuantityError(
            f"probes={probes!r}; allowed: None, a dict of selections, or one or several of "
            f"{', '.join(presets)}"
        )
    wanted: dict[tuple[str, str], Probe] = {}
    for row in (row for name in names for row in presets[name].rows):
        for probe in _fitting(model, row):
            wanted.setdefault((probe.place, probe.variable), probe)
    return Asked(tuple(wanted.values()), ())


def _fitting(model: nn.Module, row: Row) -> list[Probe]:
    modules, due = modules_by_path(model), schedule(row.schedule)
    chosen = [as_quantity(name) for name in row.names]
    return [
        Probe(place, quantity, due)
        for place in row.places(model)
        for quantity in chosen
        if not misfit(modules, place, quantity)
    ]
