"""Attention and what stands beside it on an accelerator: no step waits, the values are equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch.optim import SGD

import notebook_probe as nbp
from tests.models import Encoder, made, words
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.run.accelerator import Accelerator, moved, on_device, waits

PROBES = {
    "layer.self_attn": ["attn_entropy", "attn_entropy_share", "attn_max_logit", "attn_sink_share"],
    "layer": ["attn_head_entropy", "channel_kurtosis", "massive_ratio", "residual_change"],
    "layer.norm1": ["norm_gain_rms", "norm_bias_rms", "residual_ratio"],
    "head": ["router_load_entropy"],
}
NAMES = [name for names in PROBES.values() for name in names if name != "attn_head_entropy"]


def train_on(folder: Path, place: str) -> dict[str, Any]:
    """Three steps; how often they waited, and what was recorded."""
    never_by_itself()
    built = made(lambda: Encoder(dropout=0.0))
    model = moved(built) if place == "device" else built
    optimizer = SGD(model.parameters(), lr=0.1)
    with nbp.watch(model, store=folder / f"{place}.zarr", probes=PROBES, budget=None) as run:
        waits.clear()
        for step in range(3):
            given = words(step)
            optimizer.zero_grad()
            loss_on(model(on_device(given) if place == "device" else given)).backward()
            optimizer.step()
        waited = [*waits]
    data = run.data.load()
    return {
        "waits": waited,
        "errors": [probe.error for probe in run.status().errors],
        "heads": run.series("layer", "attn_head_entropy").values,
        **{name: data[name].max("module").values for name in NAMES},
    }


def test_attention_is_measured_on_the_device_and_no_step_waits(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    host, device = (accelerator.run(train_on, tmp_path, place) for place in ("host", "device"))
    assert device["errors"] == host["errors"] == []
    assert device["waits"] == []
    for name in ("heads", *NAMES):
        np.testing.assert_allclose(device[name], host[name], rtol=1e-5, err_msg=name)
