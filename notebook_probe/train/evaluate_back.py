"""Evaluation of an earlier state, without training from it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from notebook_probe.errors import NotApplicableError, ProbeError
from notebook_probe.model.map import ModelMap
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.attach.attachment import Attachment
from notebook_probe.run.attach.presets import resolve_presets
from notebook_probe.run.attach.request import resolve
from notebook_probe.run.going_back.requests import EvaluateAt
from notebook_probe.run.run import Run
from notebook_probe.train.checkpoints.index import Checkpoint
from notebook_probe.train.recompute import recompute

__all__ = ["evaluate_back"]


def evaluate_back(run: Run, found: Checkpoint, request: EvaluateAt) -> str:
    """Evaluate in a checkpoint; return what was done, as text.

    Raises
    ------
    ProbeError
        There is no batch to measure on, or nothing that an evaluation could tell.
    """
    if run.controls.kept_batch is None:
        raise ProbeError(
            "evaluate needs a batch: run.probe_batch(inputs, targets, loss_fn) keeps a batch"
        )
    model_map = ModelMap(run.controls.model)
    wanted = _of_evaluations(_probes(run, request.preset, model_map), model_map)
    if not wanted:
        what = request.preset or "what is attached"
        raise ProbeError(f"{what}: none of it can be measured without a backward pass")
    recompute(run, [found], None, wanted)
    n_series = sum(map(len, wanted.values()))
    return f"measured {n_series} series of step {found.step}"


def _probes(run: Run, preset: str, model_map: ModelMap) -> Iterable[Probe]:
    if not preset:
        return run.controls.wanted_probes
    return Attachment.resolved(partial(resolve_presets, probes=preset), model_map).probes


def _of_evaluations(probes: Iterable[Probe], model_map: ModelMap) -> dict[str, list[Any]]:
    """Place to quantities: those that need no gradient."""
    wanted: dict[str, list[Any]] = {}
    for probe in probes:
        try:
            resolve(model_map, [probe.place], probe.quantity, None, "eval")
        except NotApplicableError:
            continue
        here = wanted.setdefault(probe.place, [])
        if probe.quantity not in here:
            here.append(probe.quantity)
    return wanted
