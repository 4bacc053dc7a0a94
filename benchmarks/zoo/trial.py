"""An architecture trained twice, and what differs between the twins."""

from __future__ import annotations

import hashlib
import random
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import AdamW

import notebook_probe as nbp
from benchmarks.zoo.architectures import Architecture, Made
from benchmarks.zoo.leaves import Leaves, Values, tensors_in
from benchmarks.zoo.outcome import Outcome
from notebook_probe.errors import NotApplicableError

__all__ = ["tried"]

N_STEPS = 3
QUANTITIES = ["output_mean", "output_std", "weight_norm", "grad_norm"]
NEAR = 1e-4
"""Relative difference from float64 that is none: values are kept in float32."""
ROUNDING = 2e-6
"""The same of a mean, relative to the standard deviation, and of that relative to the mean."""
OTHER = {"output_mean": "output_std", "output_std": "output_mean"}
LEAST = 2.0**-149
"""The least number above 0 in float32."""


class Left(NamedTuple):
    """Digests of what a training has left, by name, and the values of each step."""

    digests: dict[str, str]
    values: list[Values]


def tried(one: Architecture, most_weights: int) -> Outcome:
    """Train an architecture and its watched twin."""
    begun = time.monotonic()
    outcome = Outcome(one.library, one.name)
    try:
        n_weights = one.count()
        if n_weights > most_weights:
            return outcome._replace(skipped=f"too large: {n_weights:,} weights")
        plain, n_modules = _trained(one.build, _plain)
    except Exception as error:  # whatever a library does with small inputs
        reason = f"does not train with small inputs here: {type(error).__name__}: {error}"
        return outcome._replace(skipped=" ".join(reason.split())[:300])
    watched, _ = _trained(one.build, _watched)
    different = [
        name for name, digest in plain.digests.items() if watched.digests.get(name) != digest
    ]
    n_values = 0
    for step, (wanted, found) in enumerate(zip(plain.values, watched.values, strict=True)):
        n_values += len(wanted)
        different += [f"step {step} {told}" for told in _apart(wanted, found)]
    return outcome._replace(
        different=different,
        n_weights=n_weights,
        n_modules=n_modules,
        n_values=n_values,
        seconds=round(time.monotonic() - begun, 1),
    )


def _trained(build: Callable[[], Made], train: Callable[[Made], Left]) -> tuple[Left, int]:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - libraries use the shared generators
    torch.manual_seed(0)
    made = build()
    made.model.train()
    return train(made), sum(1 for _ in made.model.modules())


def _plain(made: Made) -> Left:
    leaves, values = Leaves(made.model), list[Values]()
    optimizer = AdamW(made.model.parameters(), lr=1e-4)
    for _ in range(N_STEPS):
        _backward(made, optimizer)
        values.append(leaves.of_step())
        optimizer.step()
    return Left(_digests(made.model, optimizer), values)


def _watched(made: Made) -> Left:
    optimizer = AdamW(made.model.parameters(), lr=1e-4)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "run.zarr"
        with nbp.watch(made.model, optimizer, store, probes=[], budget=None) as run:
            places = "*" if any(True for _ in made.model.children()) else ""
            for name in QUANTITIES:
                with suppress(NotApplicableError):  # to no module of it
                    run.attach(places, name)
            for _ in range(N_STEPS):
                _backward(made, optimizer)
                optimizer.step()
            digests = _digests(made.model, optimizer)
        data = run.data.load()
    values = list[Values]()
    for step in range(N_STEPS):
        here = data.sel(step=step)
        values.append(
            {
                (name, str(module)): float(value)
                for name in ("calls", *QUANTITIES)
                if name in here
                for module, value in here[name].to_series().dropna().items()
            }
        )
    return Left(digests, values)


def _backward(made: Made, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    output = made.model(*made.args, **made.kwargs)
    _loss(output).backward()


def _loss(output: Any) -> Tensor:
    floats = [one for one in tensors_in(output) if one.is_floating_point() and one.requires_grad]
    return torch.stack([one.float().square().mean() for one in floats]).sum()


def _digests(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, str]:
    named = dict([*model.named_parameters(), *model.named_buffers()])
    tensors = {name: value.detach() for name, value in named.items()}
    for i, state in enumerate(optimizer.state.values()):
        tensors |= {f"state {i} {key}": torch.as_tensor(value) for key, value in state.items()}
    found = {name: _digest(value) for name, value in tensors.items()}
    found["random numbers of torch"] = _digest(torch.get_rng_state())
    found["random numbers of Python"] = repr(random.getstate())
    found["random numbers of numpy"] = repr(np.random.get_state())  # noqa: NPY002 - as above
    return found


def _digest(value: Tensor) -> str:
    flat = value.contiguous().view(-1) if value.numel() else value.reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()


def _apart(wanted: Values, found: Values) -> list[str]:
    """Return in words which values are missing or not those of the twin."""
    told = []
    for (name, place), value in wanted.items():
        here = found.get((name, place), float("nan"))
        other = abs(wanted.get((OTHER.get(name, ""), place), 0.0))
        scale = max(abs(value), other * ROUNDING / NEAR)
        is_near = abs(here - value) <= NEAR * scale + LEAST or here == value
        if not (is_near or (here != here and value != value)):
            told.append(f"{name} of {place}: {here:.6g}, not {value:.6g}")
    return told
